import { bearer, type FakeAnswer, type FakeCall, type FakeCard } from './fake-card.ts'

const base = (status_code: number, status_msg: string, more: object = {}): FakeAnswer => ({
  json: { ...more, base_resp: { status_code, status_msg } },
})

function submitNew(call: FakeCall): FakeAnswer {
  if (call.scenario === 'rate' && call.submits === 1)
    return {
      status: 429,
      json: {
        type: 'error',
        error: { type: 'rate_limit_error', message: 'slow down', http_code: '429' },
        request_id: 'r',
      },
    }
  if (call.scenario === 'invalid')
    return {
      status: 400,
      json: {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'bad duration', http_code: '400' },
        request_id: 'r',
      },
    }
  return { json: { task_id: call.begin() } }
}

function pollNew(call: FakeCall): FakeAnswer {
  const [id] = call.params
  const { scenario } = call
  const task = (status: string, more: object = {}) => ({
    json: { task: { id, status, content: null, error: null, ...more } },
  })
  if (call.countPoll(id) <= call.pendingPolls) return task(scenario === 'unknown state' ? 'brewing' : 'running')
  if (scenario === 'policy') return task('failed', { error: { code: '1026', message: 'input is sensitive' } })
  if (scenario === 'output policy') return task('failed', { error: { code: 1027, message: 'output is sensitive' } })
  if (scenario === 'failure') return task('failed', { error: { code: '1024', message: 'internal' } })
  if (scenario === 'expired') return task('expired')
  return task('succeeded', {
    content: { url: 'https://cdn.minimax.example/h3.mp4' },
    usage: { input_seconds: 0, output_seconds: 6, total_seconds: 6 },
  })
}

const SUBMIT_CODES: Readonly<Record<string, FakeAnswer>> = {
  policy: base(1026, 'input new_sensitive', { task_id: '' }),
  invalid: base(2013, 'invalid params', { task_id: '' }),
  balance: base(1008, 'insufficient balance', { task_id: '' }),
  failure: base(1000, 'unknown error', { task_id: '' }),
}

/** The first API says everything with HTTP 200. */
function submitOld(call: FakeCall): FakeAnswer {
  if (call.scenario === 'rate' && call.submits === 1) return base(1002, 'rate limit', { task_id: '' })
  return SUBMIT_CODES[call.scenario] ?? base(0, 'success', { task_id: call.begin() })
}

function pollOld(call: FakeCall): FakeAnswer {
  const task_id = call.request.query.get('task_id') ?? ''
  if (call.countPoll(task_id) <= call.pendingPolls)
    return base(0, 'success', { task_id, status: call.scenario === 'unknown state' ? 'Stirring' : 'Processing' })
  if (call.scenario === 'late policy') return base(1027, 'output new_sensitive', { task_id, status: 'Fail' })
  if (call.scenario === 'late failure') return base(0, 'success', { task_id, status: 'Fail' })
  return base(0, 'success', { task_id, status: 'Success', file_id: '269401338200065' })
}

function retrieve(call: FakeCall): FakeAnswer {
  const file_id = call.request.query.get('file_id')
  return base(0, 'success', { file: { file_id, bytes: 12, download_url: 'https://cdn.minimax.example/02.mp4' } })
}

export const minimaxFake: FakeCard = {
  provider: 'minimax',
  basePath: '',
  key: 'fake-minimax-key',
  isKnown: bearer('fake-minimax-key'),
  unauthorized: base(1004, 'login fail'),
  routes: [
    ['POST', /^\/v2\/video_generation$/, submitNew],
    ['GET', /^\/v2\/query\/video_generation\/([^/]+)$/, pollNew],
    ['POST', /^\/v1\/video_generation$/, submitOld],
    ['GET', /^\/v1\/query\/video_generation$/, pollOld],
    ['GET', /^\/v1\/files\/retrieve$/, retrieve],
  ],
}
