package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"taskledger/cmd/node/internal/certificates"
)

const namespace = "taskledger"

var daysLeft = prometheus.NewDesc(namespace+"_certificate_days_left",
	"Days until a certificate ends, of authorities the last one of the file; 0 where it cannot be read.", []string{"certificate"}, nil)

// expiry tells how long certificates hold, as their files are at the time of a scrape. It implements
// prometheus.Collector.
type expiry []certificates.File

// Describe implements prometheus.Collector.
func (e expiry) Describe(to chan<- *prometheus.Desc) { to <- daysLeft }

// Collect implements prometheus.Collector.
func (e expiry) Collect(to chan<- prometheus.Metric) {
	for _, f := range e {
		if f.Path == "" {
			continue
		}
		days := 0.0
		if until, err := f.Until(); err == nil {
			days = time.Until(until).Hours() / 24
		}
		to <- prometheus.MustNewConstMetric(daysLeft, prometheus.GaugeValue, days, f.Name)
	}
}

// ofCluster tells by its label which cluster the node is of.
func ofCluster(id string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace:   namespace,
		Name:        "cluster_info",
		Help:        "1, with the id of the cluster that the node is of.",
		ConstLabels: prometheus.Labels{"id": id},
	})
	g.Set(1)
	return g
}
