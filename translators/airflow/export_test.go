package airflow

// What every script has in common, for golden files that show the rest.
var (
	PullFunction = pullFunction
	Capturing    = capturing
	FunctionCall = functionCall
)
