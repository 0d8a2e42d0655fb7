import { bearer, type FakeAnswer, type FakeCall, type FakeCard, tooFastOnce } from './fake-card.ts'

const error = (status: number, code: string, message: string): FakeAnswer => ({
  status,
  json: { error: { code, message, param: '', type: 'BadRequest' } },
})
const TOO_FAST = error(429, 'RateLimitExceeded.EndpointRPMExceeded', 'too fast')

function images(call: FakeCall): FakeAnswer {
  const { scenario, request } = call
  const wait = tooFastOnce(call, TOO_FAST)
  if (wait !== null) return wait
  if (scenario === 'policy')
    return error(400, 'OutputImageSensitiveContentDetected.PolicyViolation', 'The picture may be against the rules.')
  if (scenario === 'invalid') return error(400, 'InvalidParameter', 'size is not valid')
  if (scenario === 'overdue') return error(403, 'AccountOverdueError', 'please recharge account 2100')
  if (scenario === 'failure') return error(500, 'InternalServiceError', 'internal')
  if (scenario === 'each refused')
    return {
      json: {
        model: request.json?.['model'],
        data: [{ error: { code: 'OutputImageSensitiveContentDetected', message: 'no' } }],
      },
    }
  call.begin()
  return {
    json: {
      model: request.json?.['model'],
      created: 1,
      data: [{ url: 'https://ark.example/a.jpeg?sig=1', size: '2048x2048' }],
      usage: { generated_images: 1, total_tokens: 16384 },
    },
  }
}

function submit(call: FakeCall): FakeAnswer {
  const { scenario } = call
  const wait = tooFastOnce(call, TOO_FAST)
  if (wait !== null) return wait
  if (scenario === 'policy')
    return error(400, 'InputTextSensitiveContentDetected', 'The text may be against the rules.')
  if (scenario === 'invalid') return error(400, 'MissingParameter', 'content is missing')
  return { json: { id: call.begin() } }
}

function poll(call: FakeCall): FakeAnswer {
  const { scenario } = call
  const [id] = call.params
  const task = { id, model: 'seedance-1-0-pro-250528' }
  if (call.countPoll(id) <= call.pendingPolls)
    return { json: { ...task, status: scenario === 'unknown state' ? 'polishing' : 'running' } }
  if (scenario === 'late policy')
    return {
      json: { ...task, status: 'failed', error: { code: 'OutputVideoSensitiveContentDetected', message: 'no' } },
    }
  if (scenario === 'failure')
    return { json: { ...task, status: 'failed', error: { code: 'InternalServiceError', message: 'internal' } } }
  if (scenario === 'expired') return { json: { ...task, status: 'expired' } }
  if (scenario === 'cleared') return { json: { ...task, status: 'succeeded', content: null } }
  const content = { video_url: 'https://ark.example/v.mp4?sig=1', last_frame_url: 'https://ark.example/last?sig=2' }
  return {
    json: {
      ...task,
      status: 'succeeded',
      content,
      usage: { completion_tokens: 108900, total_tokens: 108900 },
      duration: 5.04,
      output_format: 'mp4',
    },
  }
}

export const byteplusFake: FakeCard = {
  provider: 'byteplus',
  basePath: '/api/v3',
  key: 'fake-ark-key',
  isKnown: bearer('fake-ark-key'),
  unauthorized: error(401, 'AuthenticationError', 'the API key is not valid'),
  routes: [
    ['POST', /^\/images\/generations$/, images],
    ['POST', /^\/contents\/generations\/tasks$/, submit],
    ['GET', /^\/contents\/generations\/tasks\/([^/]+)$/, poll],
    ['DELETE', /^\/contents\/generations\/tasks\/([^/]+)$/, () => ({ json: {} })],
  ],
}
