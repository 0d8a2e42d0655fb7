"""What walk.ts does too, and says the same of: the operations that the official SDKs lack, as a program would use them."""
import io
import json
import os

from atelier_client import AtelierError, Client, pages, verify_webhook, wait_until

given = json.loads(os.environ["GIVEN"])
said = []


def refusal(ask):
    try:
        ask()
    except AtelierError as error:
        return error
    raise AssertionError("nothing was refused")


operator = Client(given["url"], given["adminToken"])
account, workflow = given["account"], given["workflow"]
operator.admin.create_account(body={"id": account})
text = operator.admin.create_key(id=account, body={"name": "walk"})["text"]
said.append(operator.admin.grant_credits(id=account, body={"usd": "5"})["outcome"])
found = [each["id"] for page in pages(operator.admin.list_accounts, by="after", limit=1) for each in page["accounts"]]
said.append(found.count(account))

client = Client(given["url"], text)
batch_id = client.post_batch(body={"workflow": workflow, "rows": [{"2.text": "one"}, {"2.text": "two"}]})["id"]
batch = wait_until(lambda: client.get_batch(id=batch_id), lambda value: value["is_done"], every=0.02)
said.append(batch["counts"]["succeeded"])
said.append(sum(len(page["jobs"]) for page in pages(client.list_jobs, batch_id=batch_id, limit=1, status=["succeeded", "failed"])))
with client.get_batch_outputs(id=batch_id) as archive:
    said.append(archive.read()[:2].decode())

job = client.post_jobs(body={"workflow": workflow, "metadata": {"from": "walk"}})
events, status = [], job["status"]
for told in client.get_job_events(id=job["id"]):
    if told.event == "status":
        status = told.data["status"]
    events.append(told.event)
said += [status, "output" in events]
said += [len(page["jobs"]) for page in pages(client.list_jobs, metadata={"from": "walk"})]

client.publish_endpoint(body={"name": "card", "file": workflow})
answered = []
run = client.run_endpoint(name="card", prefer="wait=60", body={"inputs": {"headline": "Hi"}}, on_response=lambda response: answered.append(response.status))
said += [answered[-1], run["status"], run["endpoint"]["version"], run["inputs"]["headline"]]
wrong = refusal(lambda: client.run_endpoint(name="card", body={"inputs": {"headlin": "x"}}))
said += [wrong.status, wrong.code, "string" if isinstance(wrong.request_id, str) else "nothing", "inputs" in wrong.details]

schedule = client.create_schedule(body={"name": "cards", "cron": "30 2 * * *", "time_zone": "Europe/Berlin", "endpoint": "card", "inputs": {"headline": "x"}})
client.pause_schedule(id=schedule["id"], body={"reason": "holidays"})
said.append([each["state"] for each in client.list_schedules()["schedules"]])
client.delete_schedule(id=schedule["id"])
said.append(len(client.list_schedules()["schedules"]))

webhook = client.create_webhook(body={"url": "https://example.com/hooks", "events": ["job.failed"]})
said += [webhook["secret"][:6], len(client.list_webhooks()["webhooks"])]
client.delete_webhook(id=webhook["id"])
message = given["message"]
said.append(verify_webhook(message["secret"], message["headers"], message["body"].encode())["type"])
said.append(refusal(lambda: verify_webhook(message["secret"], message["headers"], message["body"].encode() + b" ")).code)

asset = client.post_assets(body={"content_type": "text/plain", "file_path": "notes.txt", "tags": ["one", "two"], "file": io.BytesIO(b"what was said")})
with client.get_asset_content(id=asset["id"]) as content:
    said += [asset["file_path"], content.read().decode()]
with client.head_asset_by_hash(hash=asset["hash"]) as head:
    said.append(head.status)
said.append(client.delete_asset(id=asset["id"]))
said.append(refusal(lambda: client.get_asset(id=asset["id"])).status)

client.pause_queue(body={"reason": "a walk"})
said.append(client.get_queue()["pauses"][0]["reason"])
client.resume_queue()
said.append(isinstance(client.list_weights()["weights"], list))

handle = client.router.submit_request(provider="sandbox", model="image", body={"seed": 7})
request = {"provider": "sandbox", "model": "image", "request_id": handle["request_id"]}
wait_until(lambda: client.router.get_request_status(**request), lambda told: told["status"] == "COMPLETED", every=0.02)
with client.router.get_request(**request) as answer:
    said += [answer.status, answer.headers["content-type"], len(answer.read()) > 0]
print(json.dumps(said))
