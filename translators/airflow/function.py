def _dagbridge_call(function, arguments):
    import json, os, sys

    sys.stdout.reconfigure(line_buffering=True)  # the log can be followed
    index = int(os.environ.get("DAGBRIDGE_MAP_INDEX") or 0)

    def pulled(task, steps):
        with open(os.environ["DAGBRIDGE_INPUTS"]) as file:
            value = json.load(file)[task]
        if steps[0] is None:  # the own element of a mapped task; it may be all that is there
            value, steps = value[index] if isinstance(value, list) else value, steps[1:]
        # The result: an output of that name, or a member of the result, or, of the result itself, all outputs.
        name, steps = steps[0], steps[1:]
        if name in value:
            value = value[name]
        elif name == "return_value":
            value = value or None
        else:
            value = value["return_value"].get(name) if isinstance(value.get("return_value"), dict) else None
        for step in steps:
            value = value[index if step is None else step]
        return value

    def filled(value):
        if isinstance(value, list):
            return [filled(each) for each in value]
        if isinstance(value, dict) and "\0pull" in value:
            return pulled(*value["\0pull"])
        if isinstance(value, dict) and "\0text" in value:
            return "".join(each if isinstance(each, str) else str(filled(each)) for each in value["\0text"])
        if isinstance(value, dict):
            return {name: filled(each) for name, each in value.items()}
        return value

    arguments = filled(json.loads(arguments[index if len(arguments) > 1 else 0]))
    value = function(*arguments["args"], **arguments["kwargs"])
    if value is None:
        return
    try:
        text = json.dumps({"return_value": value}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SystemExit(f"what {function.__name__} returned cannot be written as JSON: {error}")
    with open(os.environ["DAGBRIDGE_OUTPUT"], "w") as file:
        file.write(text)
