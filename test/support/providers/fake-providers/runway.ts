import { bearer, type FakeAnswer, type FakeCall, type FakeCard, tooFastOnce } from './fake-card.ts'

function submit(call: FakeCall): FakeAnswer {
  if (call.request.headers['x-runway-version'] !== '2024-11-06')
    return { status: 400, json: { error: 'no version header' } }
  const wait = tooFastOnce(call, { status: 429, json: { error: 'Too many requests' } })
  if (wait !== null) return wait
  if (call.scenario === 'invalid') return { status: 400, json: { error: 'ratio is not supported' } }
  if (call.scenario === 'down') return { status: 502, json: { error: 'bad gateway' } }
  const id = call.begin()
  call.memory.set(id, call.request.path.endsWith('_to_image') ? 'o.png' : 'o.mp4')
  return { json: { id } }
}

const FAILURES: Readonly<Record<string, string>> = {
  policy: 'SAFETY.INPUT.TEXT',
  'output policy': 'SAFETY.OUTPUT.VIDEO',
  failure: 'INTERNAL.BAD_OUTPUT.CODE01',
  'bad asset': 'ASSET.INVALID',
}

function poll(call: FakeCall): FakeAnswer {
  const [id] = call.params
  const count = call.countPoll(id)
  const base = { id, createdAt: '2026-01-01T00:00:00Z' }
  if (count <= call.pendingPolls) {
    const first = call.scenario === 'unknown state' ? 'REHEARSING' : 'THROTTLED'
    return { json: count === 1 ? { ...base, status: first } : { ...base, status: 'RUNNING', progress: 0.4 } }
  }
  const failureCode = FAILURES[call.scenario]
  if (failureCode !== undefined)
    return { json: { ...base, status: 'FAILED', failure: 'It did not work out.', failureCode } }
  return {
    json: {
      ...base,
      status: 'SUCCEEDED',
      output: call.scenario === 'no output' ? [] : [`https://cdn.runway.example/${call.memory.get(id)}`],
    },
  }
}

export const runwayFake: FakeCard = {
  provider: 'runway',
  basePath: '/v1',
  key: 'fake-runway-key',
  isKnown: bearer('fake-runway-key'),
  unauthorized: { status: 401, json: { error: 'Unauthorized' } },
  routes: [
    ['POST', /^\/(image_to_video|text_to_image|video_to_video)$/, submit],
    ['GET', /^\/tasks\/([^/]+)$/, poll],
    ['DELETE', /^\/tasks\/([^/]+)$/, () => ({ status: 204 })],
  ],
}
