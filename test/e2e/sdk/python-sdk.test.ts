/**
 * The official Python SDK against the whole service. It needs a Python that has `comfy-sdk` (0.5.0) installed, named in
 * ATELIER_TEST_PYTHON; without it the test is skipped.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { startRouter } from '../../support/app/start-router.ts'

const PYTHON = process.env['ATELIER_TEST_PYTHON']
const WITHIN_MS = 120_000

const SCRIPT = `
import json
from comfy_sdk import Comfy, Workflow
from comfy_sdk.exceptions import AlreadyCompleted, ComfyError

client = Comfy(api_key="anything")
found = {}
handle = client.models.submit("sandbox/echo", {"value": "x"})
handle.get()
try:
    handle.cancel()
    found["cancel"] = "accepted"
except AlreadyCompleted as error:
    found["cancel"] = [type(error).__name__, error.http_status]
asset = client.assets.from_bytes(b"some bytes", filename="a.txt", content_type="text/plain")
asset.commit()
found["asset"] = asset.created_new
jobs = [client.submit(Workflow({"1": {"class_type": "FakeSource", "inputs": {}}})) for _ in range(3)]
summaries = list(client.list_jobs(limit=2))
found["listed"] = [s.id for s in summaries] == [j.id for j in reversed(jobs)]
found["times"] = all(s.create_time is not None and s.update_time is not None for s in summaries)
found["deployments"] = [s.deployment_id for s in summaries]
try:
    client._low.list_jobs(cursor="nonsense")
except Exception as error:
    found["cursor"] = error.code
print(json.dumps(found))
`

function runPython(url: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(PYTHON ?? '', ['-c', SCRIPT], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { COMFY_BASE_URL: url, COMFY_ROUTER_BASE_URL: url },
    timeout: WITHIN_MS,
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}

const reason = 'set ATELIER_TEST_PYTHON to a Python that has comfy-sdk 0.5.0'
test('the official Python SDK knows every answer', { skip: PYTHON === undefined ? reason : false }, async () => {
  await using app = await startRouter()
  const { code, stdout, stderr } = await runPython(app.client.url)
  assert.equal(code, 0, stderr)
  assert.deepEqual(JSON.parse(stdout), {
    cancel: ['AlreadyCompleted', 409],
    asset: true,
    listed: true,
    times: true,
    deployments: [null, null, null],
    cursor: 'invalid_cursor',
  })
})
