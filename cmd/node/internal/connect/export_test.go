package connect

// Config lets tests make connections by the files of a TLS.
var Config = TLS.config
