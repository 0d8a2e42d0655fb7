"""Runs a workflow and fetches its files, with nothing but Python: python3 examples/run-workflow.py WORKFLOW FOLDER [ADDRESS]"""
import json, os, sys, urllib.request, uuid

workflow, folder, base = (sys.argv[1:] + ["http://127.0.0.1:8189"])[:3]
token = {"Authorization": "Bearer " + os.environ["ATELIER_TOKEN"]} if "ATELIER_TOKEN" in os.environ else {}


def ask(path, content=None, **headers):
    data = None if content is None else json.dumps(content).encode()
    address = path if "://" in path else base + path
    return urllib.request.urlopen(urllib.request.Request(address, data, {**headers, **token} if address.startswith(base) else headers))


key = {"Idempotency-Key": str(uuid.uuid4()), "Content-Type": "application/json"}
job = json.load(ask("/api/v2/jobs", {"workflow": json.load(open(workflow))}, **key))
ask(job["urls"]["events"]).read()  # the stream ends when the job has ended
job = json.load(ask(job["urls"]["self"]))
if job["status"] != "succeeded":
    sys.exit("%s: %s" % (job["status"], (job["error"] or {}).get("message")))
os.makedirs(folder, exist_ok=True)
for output in job["outputs"]:
    name = os.path.join(folder, os.path.basename(output["name"]))
    with ask(output["url"]) as answer, open(name, "wb") as file:
        file.write(answer.read())
    print(name)
