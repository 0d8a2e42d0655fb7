import type { FakeAnswer, FakeCall, FakeCard } from './fake-card.ts'

const MODERATED = ['Request Moderated', 'Content Moderated']

function submit(call: FakeCall): FakeAnswer {
  const { scenario } = call
  if (scenario === 'rate' && call.submits === 1)
    return { status: 429, headers: { 'retry-after': '1' }, json: { detail: 'too many tasks' } }
  if (scenario === 'invalid') {
    return {
      status: 422,
      json: { detail: [{ loc: ['body', 'prompt'], msg: 'prompt is empty', type: 'value_error', input: '' }] },
    }
  }
  if (scenario === 'arrears') return { status: 402, json: { detail: 'Insufficient credits for fake-bfl-key' } }
  if (scenario === 'down') return { status: 503, json: { detail: 'overloaded' } }
  const id = call.begin()
  const host = scenario === 'poll url elsewhere' ? 'collector.example' : 'gateway.bfl.ai'
  const polling = scenario === 'no poll url' ? {} : { polling_url: call.at(host, `/v1/get_result?id=${id}`) }
  return { json: { id, ...polling, cost: 3, input_mp: 0, output_mp: 1 } }
}

function poll(call: FakeCall): FakeAnswer {
  const id = call.request.query.get('id') ?? ''
  const { scenario } = call
  const count = call.countPoll(id)
  if (scenario === 'poll trouble' && count <= call.pendingPolls) return { status: 502, body: 'bad gateway' }
  if (scenario === 'poll too fast' && count === 1) return { status: 429, headers: { 'retry-after': '7' }, json: {} }
  if (count <= call.pendingPolls)
    return {
      json: {
        id,
        status: scenario === 'unknown state' ? 'Dreaming of it' : 'Pending',
        result: null,
      },
    }
  if (scenario === 'policy')
    return {
      json: {
        id,
        status: 'Request Moderated',
        result: null,
        details: { 'Moderation Reasons': ['Derivative Works Filter'] },
      },
    }
  if (scenario === 'output moderated') return { json: { id, status: MODERATED[1], result: { sample: '' }, cost: 3 } }
  if (scenario === 'failure') return { json: { id, status: 'Error', result: null, details: 'out of memory' } }
  if (scenario === 'not found') return { json: { id, status: 'Task not found', result: null } }
  if (scenario === 'no output') return { json: { id, status: 'Ready', result: { sample: '' } } }
  const status = scenario === 'odd spelling' ? '  READY ' : 'Ready'
  const sample = call.at('delivery.bfl.ai', `/assets/${id}.jpeg?sig=abc`)
  const draft = scenario === 'one asset gone' ? { draft_cache: call.at('delivery.bfl.ai', '/assets/draft') } : {}
  const result = { sample, ...draft, seed: 4294967297, prompt: 'p', duration: 2.5 }
  return { json: scenario === 'other field' ? { id, state: 'Ready', result } : { id, status, result, cost: 3 } }
}

export const bflFake: FakeCard = {
  provider: 'bfl',
  basePath: '/v1',
  key: 'fake-bfl-key',
  isKnown: (headers) => headers['x-key'] === 'fake-bfl-key',
  unauthorized: { status: 403, json: { detail: 'Not authenticated' } },
  routes: [
    ['POST', /^\/(flux-[a-z0-9.-]+|flux-tools\/erase-v1)$/, submit],
    ['GET', /^\/get_result$/, poll],
  ],
}
