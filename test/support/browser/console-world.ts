/**
 * A service as the tasks of the console meet it: many stored jobs, three ComfyUI servers, work that runs, waits, failed and succeeded.
 * In the cloud kind there is a second account, whose work nobody else must see.
 */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startFleetApp } from '../app/fleet-app.ts'
import { storeJobs } from '../app/stored-jobs.ts'
import { call } from '../clients/call.ts'
import { type ConsoleClient, createConsoleClient } from '../clients/console-client.ts'

export type WorldKind = 'local' | 'token' | 'cloud'

export interface ConsoleWorld extends AsyncDisposable {
  readonly url: string
  /** What a person signs in with; empty: nothing is asked for. */
  readonly credentials: readonly string[]
  /** Acts for the account that the page shows. */
  readonly client: ConsoleClient
  /** Submits a job that waits behind the one that runs. */
  waitWith(name: string): Promise<string>
  /** The id of a job that failed. */
  readonly failed: string
}

const TOKEN = 'a-token-of-this-test-only'
const ADMIN_TOKEN = 'admin-token-of-this-test'
const ACCOUNT = 'acme'
const STORED = 10_000
const WEIGHTS = 'big.safetensors'
const PRICES = { pools: { '*': { perSecondMicros: 500, minimumMicros: 1000, holdMicros: 1000 } } }

const SOURCE = { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 255 } }

function graph(steps: object, weights: string | null = null): object {
  return {
    '1': SOURCE,
    '2': { ...steps, _meta: { title: 'Sampler' } },
    '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'card' } },
    ...(weights !== null && { '4': { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: weights } } }),
  }
}

const step = (inputs: object) => ({
  class_type: 'DemoSteps',
  inputs: { image: ['1', 0], ms: 0, preview: true, ...inputs },
})

const MADE = graph(step({ steps: 2, seed: 42 }))
const FAILS = graph({
  class_type: 'DemoRaise',
  inputs: { image: ['1', 0], exception_type: 'ValueError', message: 'a tile of 4096 is too large' },
})
/** Runs until it is canceled, with a preview every little while. */
const LONG = graph(step({ steps: 1_000_000, ms: 300 }), WEIGHTS)

export async function openConsoleWorld(kind: WorldKind): Promise<ConsoleWorld> {
  const isCloud = kind === 'cloud'
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-world-'))
  if (kind !== 'token') await storeJobs(dataDir, { accountId: isCloud ? ACCOUNT : 'local', count: STORED })
  const app = await startFleetApp({
    dataDir,
    // Only the first has the weights: what needs them waits behind the long run, while the others are free.
    servers: [{ checkpoints: [WEIGHTS] }, {}, {}],
    settings: {
      ...(kind === 'token' && { token: TOKEN }),
      ...(isCloud && { kind: 'cloud', adminToken: ADMIN_TOKEN, prices: JSON.stringify(PRICES) }),
    },
  })
  const key = isCloud ? await makeAccounts(app.url) : kind === 'token' ? TOKEN : null
  const client = createConsoleClient(app.url, key)
  const submit = (workflow: object, name: string) => client.submit(workflow, { metadata: { name } })
  const [failed, made, running] = [
    await submit(FAILS, 'poster'),
    await submit(MADE, 'postcard'),
    await submit(LONG, 'portrait'),
  ]
  await client.untilStatus(failed, 'failed')
  await client.untilStatus(made, 'succeeded')
  await client.untilStatus(running, 'running')
  return {
    url: app.url,
    credentials: key === null ? [] : isCloud ? [key, ADMIN_TOKEN] : [key],
    client,
    waitWith: (name) => submit(LONG, name),
    failed,
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  }
}

/** Gives the first account credit, and the second one work of its own; returns the key of the first. */
async function makeAccounts(url: string): Promise<string> {
  const admin = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    const answer = await call(url, `/admin/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (answer.status >= 300) throw new Error(`${path}: ${answer.text}`)
    return answer.json
  }
  await admin(`/accounts/${ACCOUNT}/grants`, { micros: 20_000_000, id: 'first' })
  await admin('/accounts', { id: 'rival', limits: { creditFloorMicros: null } })
  const other = createConsoleClient(url, (await admin('/accounts/rival/keys', {})).text)
  await other.submit(MADE, { metadata: { name: 'a secret of the rival' } })
  return (await admin(`/accounts/${ACCOUNT}/keys`, { name: 'of the test' })).text
}
