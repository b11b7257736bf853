package output

// TimeIn is Time in another zone than the local one, which others read while a test runs.
var TimeIn = timeIn
