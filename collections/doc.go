// Package collections reads files that say which collections are kept up to date, how and when, and compares them.
//
// A file is YAML, of at most 4 MiB and 10,000 collections:
//
//	defaults:                        # may be left out
//	  timezone: Europe/Berlin
//	sources:
//	  shop:
//	    driver: exec                 # of all collections of shop that name no other
//	    program: sync-table
//	    collections:
//	      - name: orders             # its id is shop_orders
//	        schedule: "0 0 * ? * *"  # a cron expression of package cron; none = it runs when it is asked to
//	        args: [orders]
//	      - name: prices
//	        driver: fetch
//	        url: https://prices.example/today.csv
//	        to: shop/prices.csv
//
// Every key but name, collections, sources and defaults may stand at a collection, at its source, or below defaults:
// the nearest one holds, with all of its value. url and path count as one key. Inherited keys that the driver does not
// have are passed over.
//
//	driver            keys
//	exec              program; args, env and dir may be left out
//	fetch             url, or path below the node's root of files; to, a path below the root of what is synchronized
//	go:NAME           params, anything: they are for the driver that nodes have by that name
//	noop              none; also where no driver is named, with a warning
//
//	key               as in schedule.Definition; default
//	schedule          cron; none, as "" is
//	timezone          UTC
//	priority          200, the base of a tick's run; 1 to 9,223,371
//	timeout           none
//	attempts          25
//	keep              100; 0 keeps none
//	overlap           forbid
//	misfire           once
//	grace             1h; 0s is none
//	jitter            0s
//	start, end        none
//	pause_on_failure  false
//
// All aliases of YAML (*name) are refused, and with them merge keys: no text stands for a longer one. So are tags that
// JSON has no type for, keys that are no texts, and a second document.
//
// All functions are pure, except that Parse reads the data of time zones. All are safe for concurrent use. The form of
// the file follows the configuration of sources of EventNative (Jitsu).
package collections
