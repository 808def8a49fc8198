package graph

import (
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// What the protocol has and this release does not do is refused by name: ignored, it would do something else than was asked.

func (c *checker) checkUnsupportedWorkflow() {
	c.refuse("airflowDag", c.w.GetAirflowDag() != nil)
	c.refuse("kfpPipeline", c.w.GetKfpPipeline() != "")
	// They are for DAGs of Airflow's and KFP's: native tasks have no place for them.
	c.refuse("parameters", len(c.w.GetParameters()) > 0)
	c.refuse("conf", c.w.GetConf() != nil)
	c.refuse("logicalDate", c.w.GetLogicalDate() != nil)
}

func (c *checker) checkUnsupportedTask(at string, t *dagbridgev1.Task) {
	c.refuse(at+".fallbacks", len(t.GetFallbacks()) > 0)
	c.refuse(at+".when", t.GetWhen() != nil)
}

func (c *checker) refuse(field string, set bool) {
	if set {
		c.add(field, "is not supported yet")
	}
}
