import { createHmac } from 'node:crypto'
import type { FakeAnswer, FakeCall, FakeCard } from './fake-card.ts'

const envelope = (code: number, message: string, data: unknown = null, status = 200): FakeAnswer => ({
  status,
  json: { code, message, request_id: 'r-1', data },
})

/** The access key and its secret, as the older accounts have them; the token is checked as the provider would. */
function isSigned(authorization: string | undefined): boolean {
  const [head, claims, signature] = (authorization ?? '').replace('Bearer ', '').split('.')
  if (signature === undefined) return false
  const expected = createHmac('sha256', 'secret-of-kling').update(`${head}.${claims}`).digest('base64url')
  const { iss, exp, nbf } = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8'))
  return signature === expected && iss === 'access-of-kling' && exp - nbf === 1805
}

const REFUSALS: Readonly<Record<string, FakeAnswer>> = {
  policy: envelope(1301, 'Failure to pass the risk control system', null, 400),
  'policy inside success': envelope(1300, 'Trigger strategy'),
  invalid: envelope(1201, 'duration is invalid', null, 400),
  arrears: envelope(1102, 'Resource pack exhausted', null, 429),
  failure: envelope(5000, 'Server internal error', null, 500),
}

function submit(call: FakeCall): FakeAnswer {
  if (call.scenario === 'rate' && call.submits === 1)
    return envelope(1303, 'parallel task over resource pack limit', null, 429)
  const refusal = REFUSALS[call.scenario]
  if (refusal !== undefined) return refusal
  const task_id = call.begin()
  const reference = call.request.json?.['external_task_id']
  if (typeof reference === 'string') call.memory.set(reference, task_id)
  return envelope(0, 'SUCCEED', { task_id, task_status: 'submitted' })
}

function poll(call: FakeCall): FakeAnswer {
  // A task is asked for by its own id or by the one that its sender gave it.
  const task_id = call.memory.get(call.params[1]) ?? call.params[1]
  const { scenario } = call
  if (scenario === 'down') return envelope(5001, 'Server temporarily unavailable', null, 503)
  if (!task_id.startsWith('task-')) return envelope(1203, 'Requested resource not found', null, 404)
  const state = (task_status: string, more: object = {}) => envelope(0, 'SUCCEED', { task_id, task_status, ...more })
  if (call.countPoll(task_id) <= call.pendingPolls)
    return state(scenario === 'unknown state' ? 'warming_up' : 'processing')
  if (scenario === 'late policy') return state('failed', { task_status_msg: 'The result triggers the risk control' })
  if (scenario === 'late failure') return state('failed', { task_status_msg: 'worker lost' })
  if (scenario === 'empty element') return state('succeed', { task_result: { videos: [{}] } })
  const element = { id: 'v1', url: 'https://cdn.klingai.example/v1.mp4', duration: '5.1' }
  const task_result = call.params[0].startsWith('images')
    ? { images: [{ index: 0, url: 'https://cdn.klingai.example/i.png' }] }
    : { videos: [element] }
  return state(scenario === 'newer word' ? 'succeeded' : 'succeed', { task_result, final_unit_deduction: '2' })
}

export const klingFake: FakeCard = {
  provider: 'kling',
  basePath: '',
  key: 'access-of-kling:secret-of-kling',
  isKnown: ({ authorization }) => authorization === 'Bearer plain-kling-key' || isSigned(authorization),
  unauthorized: envelope(1002, 'access key not found', null, 401),
  routes: [
    ['POST', /^\/v1\/(videos|images)\/([a-z0-9-]+)$/, submit],
    ['GET', /^\/v1\/((?:videos|images)\/[a-z0-9-]+)\/([^/]+)$/, poll],
  ],
}
