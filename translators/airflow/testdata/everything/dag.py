"""A DAG with one of everything that can be translated, and runs anywhere."""

import datetime as dt
import json

try:
    from airflow.sdk import DAG, task, task_group
    from airflow.providers.standard.operators.bash import BashOperator
    from airflow.providers.standard.operators.empty import EmptyOperator
except ImportError:
    from airflow import DAG
    from airflow.decorators import task, task_group
    from airflow.operators.bash import BashOperator
    from airflow.operators.empty import EmptyOperator
with DAG("everything", schedule=None, start_date=dt.datetime(2026,1,1), params={"lr":0.1,"name":"x y"}) as dag:
    begin=EmptyOperator(task_id="begin")
    one=BashOperator(task_id="one", bash_command="echo noise; echo err >&2; echo 'it'\"'\"'s \"{{ params.name }}\" \\\\ {{ ds }} é  '")
    many=BashOperator(task_id="many", multiple_outputs=True, output_processor=json.loads, bash_command="echo '{\"a\": \"va\\u0027lue\", \"n\": 3, \"l\": [1,{\"k\":true}], \"none\": null}'")
    pull=BashOperator(task_id="pull", bash_command="printf '%s|' \"$ONE\" \"$A\" {{ ti.xcom_pull(task_ids='many', key='n') }} '{{ ti.xcom_pull(task_ids='many')['l'] | tojson }}' '{{ ti.xcom_pull('many')['l'][1].k }}' {{ ti.xcom_pull(task_ids='many', key='none') }} {{ ti.xcom_pull(task_ids='begin') }}; echo",
        env={"ONE":"{{ ti.xcom_pull(task_ids='one') }}","A":"{{ ti.xcom_pull(task_ids='many', key='a') }}", "PATH":"/usr/bin:/bin"})
    begin>>[one,many]>>pull
    m=BashOperator.partial(task_id="cross", env={"B":"{{ ds_nodash }}","PATH":"/usr/bin:/bin"}).expand(bash_command=["echo a $B","echo b {{ run_id | length > 3 }}","exit 99"], cwd=["/tmp"])
    k=BashOperator.partial(task_id="kw").expand_kwargs([{"bash_command":"echo 1 $Z","env":{"Z":"z"}},{"bash_command":"echo 2 $Z", "env":{"Z":"{{ ds }}"}}])
    x=BashOperator.partial(task_id="product").expand(env=[{"A":"1"},{"A":"2"}], bash_command=["echo x$A","echo y$A","echo z$A"])
    fails=BashOperator(task_id="fails", bash_command="echo before; exit 3")
    skip=BashOperator(task_id="skip", bash_command="exit 99")
    end=EmptyOperator(task_id="end", trigger_rule="all_done")
    bad=EmptyOperator(task_id="bad")
    ok=BashOperator(task_id="ok", trigger_rule="one_failed", bash_command="true")
    [fails,skip]>>end; [fails,skip]>>bad; [fails,skip]>>ok
    pull>>[m,k,x]
    @task_group
    def g(site):
        a=BashOperator(task_id="a", bash_command=site)
        b=BashOperator(task_id="b", bash_command="echo $S again", env={"S": a.output})
        a>>b
    g.expand(site=["echo s1","echo s2"])
    s=BashOperator(task_id="setup", bash_command="echo up").as_setup()
    w=BashOperator(task_id="work", bash_command="exit 1")
    t=BashOperator(task_id="td", bash_command="echo down {{ ti.xcom_pull(task_ids='setup') }}", do_xcom_push=False).as_teardown(setups=s)
    s>>w>>t
    last=BashOperator(task_id="indirect", bash_command="echo {{ ti.xcom_pull(task_ids='one') | tojson }}", trigger_rule="all_done")
    x>>last
    @task.dagbridge
    def f(a, b=1, *, ds): return {"a": a, "b": b, "ds": ds}
    @task.dagbridge
    def h(z): return [z, "{{ ds }}"]
    h.expand(z=[1,"two"])
    h.override(task_id="h2")(f("{{ ds }}", b=[1,"é"]))
