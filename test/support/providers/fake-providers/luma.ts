import { bearer, type FakeAnswer, type FakeCall, type FakeCard, tooFastOnce } from './fake-card.ts'

function submit(call: FakeCall): FakeAnswer {
  const wait = tooFastOnce(call, { status: 429, json: { detail: 'Too many requests' } })
  if (wait !== null) return wait
  if (call.scenario === 'invalid')
    return { status: 422, json: { detail: [{ loc: ['body', 'aspect_ratio'], msg: 'bad', type: 'enum' }] } }
  if (call.scenario === 'policy at submit')
    return { status: 400, json: { detail: 'The prompt failed content moderation' } }
  return {
    status: 201,
    json: { ...describe(call), id: call.begin(), state: 'queued', assets: null, failure_reason: null },
  }
}

/** What every answer of the first API says beside the state. */
function describe({ request }: FakeCall): object {
  const generation_type = request.path.endsWith('/image') ? 'image' : 'video'
  return { generation_type, created_at: '2026-01-01T00:00:00Z', model: 'ray-2', request: { prompt: 'p' } }
}

/** Whatever is not set comes as an explicit null, as the real one does. */
function poll(call: FakeCall): FakeAnswer {
  const [id] = call.params
  const { scenario } = call
  const base = { ...describe(call), id, failure_reason: null, assets: null }
  if (call.countPoll(id) <= call.pendingPolls)
    return {
      json: {
        ...base,
        state: scenario === 'unknown state' ? 'sketching' : 'dreaming',
        assets:
          scenario === 'preview first'
            ? { image: null, video: null, progress_video: 'https://cdn.luma.example/preview.mp4' }
            : null,
      },
    }
  if (scenario === 'policy') return { json: { ...base, state: 'failed', failure_reason: 'The output was moderated' } }
  if (scenario === 'failure') return { json: { ...base, state: 'failed', failure_reason: 'GPU fell over' } }
  const assets = {
    image: 'https://cdn.luma.example/i.jpg',
    video: 'https://cdn.luma.example/v.mp4',
    progress_video: null,
  }
  if (scenario === 'only a preview')
    return {
      json: {
        ...base,
        state: 'completed',
        assets: { image: null, video: null, progress_video: 'https://cdn.luma.example/preview.mp4' },
      },
    }
  return { json: { ...base, state: 'completed', assets } }
}

export const lumaFake: FakeCard = {
  provider: 'luma',
  basePath: '',
  key: 'fake-luma-key',
  isKnown: bearer('fake-luma-key'),
  unauthorized: { status: 401, json: { detail: 'Not authenticated' } },
  routes: [
    ['POST', /^\/dream-machine\/v1\/generations(\/image)?$/, submit],
    ['GET', /^\/dream-machine\/v1\/generations\/([^/]+)$/, poll],
    ['DELETE', /^\/dream-machine\/v1\/generations\/([^/]+)$/, () => ({ status: 204 })],
  ],
}

function pollSecond(call: FakeCall): FakeAnswer {
  const [id] = call.params
  const { scenario } = call
  const base = { id, output: null, failure_code: null, failure_reason: null }
  if (call.countPoll(id) <= call.pendingPolls)
    return { json: { ...base, state: scenario === 'unknown state' ? 'thinking' : 'processing' } }
  if (scenario === 'policy')
    return { json: { ...base, state: 'failed', failure_code: 'content_moderated', failure_reason: 'moderated' } }
  if (scenario === 'failure')
    return { json: { ...base, state: 'failed', failure_code: 'generation_failed', failure_reason: 'it broke' } }
  if (scenario === 'budget')
    return {
      json: {
        ...base,
        state: 'failed',
        failure_code: 'budget_exhausted',
        failure_reason: 'workspace budget of 100 used up',
      },
    }
  return { json: { ...base, state: 'completed', output: [{ type: 'image', url: 'https://cdn.luma.example/u.png' }] } }
}

export const secondLumaFake: FakeCard = {
  provider: 'luma_2',
  basePath: '/v1',
  key: 'fake-luma-key',
  isKnown: bearer('fake-luma-key'),
  unauthorized: { status: 401, json: { detail: 'Not authenticated' } },
  routes: [
    ['POST', /^\/generations$/, submit],
    ['GET', /^\/generations\/([^/]+)$/, pollSecond],
  ],
}
