/**
 * The official Python SDK against the whole service. It needs a Python that has `comfy-sdk` (0.5.0) installed, named in
 * ATELIER_TEST_PYTHON; without it the test is skipped.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { startRouter } from '../../support/app/start-router.ts'
import { FAULTS, PAINTERS, startPainter, writePainters } from '../../support/providers/painters.ts'

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

function runPython(url: string, script: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(PYTHON ?? '', ['-c', script], {
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

// What a provider does is in the prompt: "north overloaded".
const PROVIDERS_SCRIPT = `
import json
from comfy_sdk import Comfy
from comfy_sdk.retry import RetryPolicy

client = Comfy(api_key="anything")
found = {}

def run(name, arguments, who=client, **options):
    try:
        told = who.models.run_detailed("north/painter", arguments, **options)
        by = told.output.get("by", "in its own form: " + ", ".join(told.output))
        found[name] = [by, told.serving_provider, told.dropped_params and list(told.dropped_params), told.replayed]
    except Exception as error:
        found[name] = [type(error).__name__, error.http_status]
        return error.idempotency_key

run("own", {"prompt": "a fox"})
run("named", {"prompt": "a fox", "tone": "warm"}, model_provider="west")
run("fallback", {"prompt": "north overloaded", "tone": "warm"}, idempotency_key="one")
run("replay", {"prompt": "north overloaded", "tone": "warm"}, idempotency_key="one")
run("switched off", {"prompt": "north forbidden"}, fallback_provider=False)
run("strict", {"text": "a fox"}, model_provider="south", strict_mode=True)
run("unknown", {"prompt": "a fox"}, model_provider="nobody")
run("elsewhere", {"prompt": "a fox"}, model_provider="runware")
run("untranslatable", {"prompt": "a fox", "mask": "x"}, model_provider="south")
run("all refuse", {"prompt": "north forbidden, south forbidden, west forbidden"})
key = run("perhaps", {"prompt": "north 500 after"})
run("perhaps again", {"prompt": "north 500 after"}, idempotency_key=key)
bold = Comfy(api_key="anything", retry=RetryPolicy(retry_possibly_in_flight=True, max_elapsed=4))
run("bold", {"prompt": "north 503 after"}, bold)
run("second fails", {"prompt": "north overloaded, south 500 after"}, bold)
print(json.dumps(found))
`

const reason = 'set ATELIER_TEST_PYTHON to a Python that has comfy-sdk 0.5.0'
test('the official Python SDK knows every answer', { skip: PYTHON === undefined ? reason : false }, async () => {
  await using app = await startRouter()
  const { code, stdout, stderr } = await runPython(app.client.url, SCRIPT)
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

test('the official Python SDK is told who served a call, and never makes one twice', {
  skip: PYTHON === undefined ? reason : false,
}, async () => {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const painters = await Promise.all(
    PAINTERS.map((name) =>
      startPainter(name, (prompt) => FAULTS.find((fault) => prompt.includes(`${name} ${fault}`)) ?? 'none'),
    ),
  )
  for (const painter of painters) stack.use(painter)
  const [north, south, west] = painters.map(({ url }) => url) as [string, string, string]
  const { catalog, providers } = await writePainters(folder, { north, south, west })
  const app = stack.use(await startTestApp({ settings: { providers, catalogs: catalog } }))
  const { code, stdout, stderr } = await runPython(app.url, PROVIDERS_SCRIPT)
  assert.equal(code, 0, stderr)
  const tones = ['tone (south knows no tones — none at all)']
  assert.deepEqual(JSON.parse(stdout), {
    own: ['north', null, null, false],
    named: ['west', null, ['tone (west chooses it by itself)'], false],
    fallback: ['south', 'south', tones, false],
    replay: ['south', 'south', tones, true],
    'switched off': ['ProviderError', 502],
    strict: ['in its own form: images', null, null, false],
    unknown: ['InvalidInput', 400],
    elsewhere: ['ModelNotFound', 404],
    untranslatable: ['InvalidInput', 422],
    'all refuse': ['ProviderError', 502],
    perhaps: ['ProviderError', 502],
    'perhaps again': ['ProviderError', 502],
    bold: ['ProviderError', 502],
    'second fails': ['ProviderError', 502],
  })
  const made = painters.map((painter) => Object.fromEntries(painter.made))
  for (const prompt of ['north 500 after', 'north 503 after', 'north overloaded, south 500 after'])
    assert.equal(
      made.reduce((sum, of) => sum + (of[prompt] ?? 0), 0),
      1,
      prompt,
    )
})
