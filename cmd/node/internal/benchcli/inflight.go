package benchcli

// maxInFlight bounds the tasks that a measurement may have under way.
const maxInFlight = 16_384
