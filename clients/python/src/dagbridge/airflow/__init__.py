"""Airflow provider: tasks of a DAG as native Slurm, Kubernetes and local jobs, through a dagbridge gateway.

Airflow decides what runs and when; the gateway knows where. An operator names its task to the gateway as Airflow does (DAG,
run, task, map index, try), so that submitting is safe to repeat: whatever dies in between, one try is one native job.

Modules here are imported when DAG files are parsed, so they import neither an HTTP client nor anything else that takes time;
what a running task needs is imported where it is used. Nothing here knows a scheduler.
"""
