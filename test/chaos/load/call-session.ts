/** One call of a model: directly or through the queue, repeated with its key until its outcome is known, and sometimes once more. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { SeededRandom } from '../../support/seeded-random.ts'
import { type Answer, type Client, isUnderWay } from './client.ts'

const REPLAY_SHARE = 0.15
const QUEUED_SHARE = 0.35
const CANCEL_SHARE = 0.1
const POLL_MS = 500

export async function runCallSession(client: Client, random: SeededRandom): Promise<void> {
  const model = random.next() < 0.5 ? 'paint' : 'film'
  const isQueued = random.next() < QUEUED_SHARE
  const key = randomUUID()
  const init = {
    method: 'POST',
    headers: { 'idempotency-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: key }),
  }
  const path = `/v2/models/chaos/${model}`
  const act = isQueued ? () => askQueued(client, path, init, random) : () => client.ask(path, init, isDecided)
  const answer = await act()
  const generation = toGeneration(client, key, answer)
  client.tell({ what: 'call', key, account: client.account.id, model, isQueued, generation })
  if (isQueued || random.next() > REPLAY_SHARE) return
  const again = await client.ask(path, init, isDecided)
  // A call that surely made nothing runs when its key comes again: then this is its outcome.
  if (generation === null && again.status === 200)
    client.tell({
      what: 'call',
      key,
      account: client.account.id,
      model,
      isQueued,
      generation: toGeneration(client, key, again),
    })
  else if (generation !== null && again.status === 409)
    // Its node was away from the store for longer than its lease: the answer was given, and the key is spent (decision 0033).
    client.tell({ what: 'refused', word: `${path} 409 after its result` })
  else if (again.status !== answer.status || toGeneration(client, key, again) !== generation)
    client.flaw('doubled', `the key ${key} was answered ${answer.status} ${generation}, then ${describe(again)}`, key)
}

/** Whatever the same key would only repeat. */
function isDecided(answer: Answer): boolean {
  if (answer.status === 200) return true
  if (answer.headers.get('idempotent-replayed') === 'true') return true
  return answer.status < 500 && answer.status !== 429 && !isUnderWay(answer)
}

function toGeneration(client: Client, key: string, answer: Answer): string | null {
  if (answer.status === 200) {
    if (answer.json.prompt !== key)
      client.flaw('wrong bytes', `the call ${key} was given the result of another one`, key)
    return answer.json.generation
  }
  // The row of docs/router.md: sent, and its answer was lost. Nothing else may be in the way of a call.
  const isUnknown = answer.status === 409 && answer.json?.error_type === 'invalid_input'
  const isFailed = answer.status === 502 || answer.status === 504 || answer.json?.error_type === 'cancelled'
  if (!isUnknown && !isFailed) client.flaw('contract', `the call ${key} answers ${describe(answer)}`, key)
  return null
}

async function askQueued(client: Client, path: string, init: RequestInit, random: SeededRandom): Promise<Answer> {
  const taken = await client.ask(`${path}/requests`, init)
  if (taken.status !== 201) return taken
  const url = `${path}/requests/${taken.json.request_id}`
  const mustCancel = random.next() < CANCEL_SHARE
  if (mustCancel) {
    const answer = await client.ask(`${url}/cancel`, { method: 'PUT' })
    if (answer.status !== 202 && answer.status !== 409)
      client.flaw('contract', `the cancel of a request answers ${describe(answer)}`)
  }
  for (;;) {
    // A result that is a failure of the provider has its status, and stays so.
    const status = await client.ask(`${url}/status`)
    if (status.status !== 200) client.flaw('lost', `the request ${url} answers ${describe(status)}`)
    if (status.status !== 200 || status.json.status === 'COMPLETED') break
    await pause(POLL_MS)
  }
  return await client.ask(url, {}, ({ status }) => ![202, 429, 500, 503].includes(status))
}

function describe({ status, json }: Answer): string {
  return `${status} ${JSON.stringify(json)?.slice(0, 300)}`
}
