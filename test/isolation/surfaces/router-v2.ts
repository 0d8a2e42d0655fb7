/** The Model Router: calls in every state, their idempotency keys, and the catalogue, which all accounts share. */

import type { Tenant } from '../../support/app/start-shared.ts'
import { call } from '../../support/clients/call.ts'
import { done, gate, refusedBy } from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { atDeployments } from '../at-deployments.ts'
import { readOperations, verbsOf } from '../contract.ts'
import type { IsolationCase, IsolationSurface } from '../surface.ts'
import type { World } from '../world.ts'

const SPEC = 'spec/router.openapi.json'
const MODEL = '/v2/models/fake/direct'
const BODY = JSON.stringify({ prompt: 'x' })

interface Things {
  /** Request ids by what is told of them. */
  readonly requests: ReadonlyMap<string, string>
  /** Idempotency keys likewise. */
  readonly keys: ReadonlyMap<string, string>
}

export const routerV2: IsolationSurface = {
  name: 'router-v2',
  spec: SPEC,
  harmless: [],
  lists: [
    { operation: 'listModels', path: '/v2/models' },
    { operation: 'getRouterOpenapi', path: '/v2/models/openapi.json' },
    { operation: 'getModel', path: MODEL },
    { operation: 'getModelOpenapi', path: `${MODEL}/openapi.json` },
  ],
  async prepare(world) {
    const things = await makeThings(world)
    const cases = [...byRequest(things), ...(await byKey(things, world)), ...(await byEndpoint(world))]
    const owned = [...things.requests.values()].map((id) => `${MODEL}/requests/${id}/status`)
    return { cases: cases.flatMap((each) => [each, ...atDeployments(each, world)]), owned }
  },
  async settle({ app }, { status, json }, { headers }) {
    if (status !== 201) return
    const ask = (path: string) => call(app.url, path, { headers: { authorization: headers?.['authorization'] ?? '' } })
    await untilStatus(ask, json.request_id, 'COMPLETED')
  },
}

/** Every operation on a queued request, with every such request. */
function byRequest({ requests }: Things): IsolationCase[] {
  const operations = readOperations(SPEC).filter(({ path }) => path.includes('{request_id}'))
  return operations.flatMap((operation) =>
    Array.from(requests, ([title, id]) => {
      const at = (requestId: string) =>
        operation.path.replace('{provider}/{model}', 'fake/direct').replace('{request_id}', requestId)
      return verbsOf(operation).map((method) => ({
        operation: operation.id,
        title: `${method} ${operation.path} of ${title}`,
        foreign: { method, path: at(id) },
        unknown: { method, path: at(crypto.randomUUID()) },
      }))
    }).flat(),
  )
}

/** Keys that somebody used, for the same request and for another one, at once and through the queue. */
async function byKey({ keys }: Things, { app }: World): Promise<IsolationCase[]> {
  const post = (path: string, headers: Record<string, string>, body: string) => ({
    method: 'POST',
    path,
    headers,
    body,
  })
  const targets: readonly [operation: string, path: string][] = [
    ['runModel', MODEL],
    ['submitRequest', `${MODEL}/requests`],
    ['estimateModel', `${MODEL}/estimate`],
  ]
  const cases: IsolationCase[] = []
  for (const [operation, path] of targets) {
    for (const [title, key] of keys) {
      for (const body of [BODY, JSON.stringify({ prompt: 'another' })]) {
        // A caller of its own each time: a key that the caller itself has used already would tell nothing.
        const tenant = await app.account(`caller-${cases.length}`, { requestsPerMinute: null })
        const headers = (used: string) => ({ ...keyed(used), authorization: `Bearer ${tenant.key}` })
        cases.push({
          operation,
          title: `POST ${path} with the key of ${title} and ${body}`,
          foreign: post(path, headers(key), body),
          unknown: post(path, headers(crypto.randomUUID()), body),
        })
      }
    }
  }
  return cases
}

/** Endpoints of the other account, which are models of that account only. As many letters differ from the models that all have. */
async function byEndpoint({ other }: World): Promise<IsolationCase[]> {
  const file = { '1': { class_type: 'FakeSave', inputs: { text: 'of a model' } } }
  const body = JSON.stringify({ name: 'endpoint-1', file })
  const made = await other.call('/api/v2/endpoints', { method: 'POST', body })
  if (made.status !== 201) throw new Error(`${made.status} ${made.text}`)
  const operations = readOperations(SPEC).filter(
    ({ path }) => path.includes('{model}') && !path.includes('{request_id}'),
  )
  return operations.flatMap((operation) =>
    ['', '@1', '@latest'].flatMap((version) =>
      verbsOf(operation).map((method) => {
        const at = (name: string) => ({
          method,
          path: operation.path.replace('{provider}/{model}', `local/${name}${version}`),
          ...(method === 'POST' && { body: '{}' }),
        })
        const title = `${method} ${operation.path} of an endpoint${version}`
        return { operation: operation.id, title, foreign: at('endpoint-1'), unknown: at('endpoint-2') }
      }),
    ),
  )
}

async function makeThings({ provider, other, held: toRelease }: World): Promise<Things> {
  const submit = async (key: string): Promise<string> => {
    const answer = await other.call(`${MODEL}/requests`, { method: 'POST', headers: keyed(key), body: BODY })
    if (answer.status !== 201) throw new Error(`${answer.status} ${answer.text}`)
    return answer.json.request_id
  }
  const ended = await submit('ended-key')
  await untilStatus(other.call, ended, 'COMPLETED')
  provider.answer(refusedBy('failed'))
  const failed = await submit('failed-key')
  await untilStatus(other.call, failed, 'COMPLETED')
  const held = gate()
  toRelease.defer(held.open)
  // The next two calls of the other account never end; everybody else's end at once.
  provider.answer(held.answer, held.answer, done({ ok: true }))
  const begun = provider.submits.length
  const running = await submit('running-key')
  await untilStatus(other.call, running, 'IN_PROGRESS')
  // Nobody waits for its answer: it comes when everything ends.
  other.call(MODEL, { method: 'POST', headers: keyed('direct-key'), body: BODY }).catch(() => {})
  await waitUntil(() => provider.submits.length >= begun + 2)
  const waiting = await submit('waiting-key')
  const canceled = await submit('canceled-key')
  await other.call(`${MODEL}/requests/${canceled}/cancel`, { method: 'PUT' })
  const requests = { ended, failed, running, waiting, canceled }
  return {
    requests: new Map(Object.entries(requests).map(([state, id]) => [`a request (${state})`, id])),
    keys: new Map([...Object.keys(requests), 'direct'].map((state) => [`a call (${state})`, `${state}-key`])),
  }
}

function keyed(key: string): Record<string, string> {
  return { 'content-type': 'application/json', 'idempotency-key': key }
}

async function untilStatus(ask: Tenant['call'], id: string, wanted: string): Promise<void> {
  await waitUntil(async () => {
    const { status, json, text } = await ask(`${MODEL}/requests/${id}/status`)
    if (status !== 200) throw new Error(`${status} ${text}`)
    return json.status === wanted
  })
}
