/**
 * One model that three providers serve, each in a form of its own, as files of a catalogue; and the providers, which count what they
 * make. `north` has the model, `south` answers at once in another form, `west` makes tasks that are polled.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'

export const PAINTER = 'north/painter'
/** In millionths of a US dollar: each its own, so that a charge tells who served. */
export const PRICES = { north: 10_000, south: 23_000, west: 31_000 } as const
export type PainterName = keyof typeof PRICES
export const PAINTERS = Object.keys(PRICES) as PainterName[]

const usd = (name: PainterName) => String(PRICES[name] / 1_000_000)
const TEXT = { type: 'string', minLength: 1, maxLength: 200 }

function provider(name: PainterName, baseUrl: string) {
  return {
    ...{ provider: name, title: name, base_url: baseUrl, api_hosts: [], concurrency: 200 },
    auth: [{ headers: { authorization: 'Bearer {key}' } }],
    outcomes: [
      { on: ['error'], path: 'error', match: '^refused for its content$', is: 'policy' },
      {
        on: ['error'],
        status: [503],
        path: 'error',
        match: '^overloaded$',
        is: 'not_accepted',
        source: 'https://example.com/errors',
      },
    ],
    messages: ['error'],
  }
}

function model(name: PainterName, id: string, rest: object) {
  return {
    id,
    billing: { charges_on_policy_rejection: 'no' },
    price: { parts: [{ unit: 'request', usd: usd(name) }] },
    ...rest,
  }
}

const PICTURE = { type: 'object', properties: { picture: { type: 'string' }, by: { type: 'string' } } }

export const NATIVE = model('north', PAINTER, {
  input: {
    modalities: ['text'],
    schema: {
      type: 'object',
      required: ['prompt'],
      properties: {
        prompt: TEXT,
        size: { type: 'string', enum: ['64x32', '128x64', 'auto'] },
        tone: { type: 'string' },
        mask: { type: 'string' },
        seed: { type: 'integer' },
      },
    },
    example: { prompt: 'a fox', size: '64x32' },
  },
  output: { modalities: ['image'], media_type: 'application/json', schema: PICTURE },
  returns: 'direct',
  adapter: { operations: [{ name: 'paint', path: '/paint', returns: 'json' }], assets: ['picture'] },
})

const MASK = { field: 'mask', reason: 'it cannot paint a part of a picture' }

export const SOUTH = model('south', 'south/north-painter', {
  input: {
    modalities: ['text'],
    schema: {
      type: 'object',
      required: ['text'],
      properties: {
        text: TEXT,
        width: { type: 'integer', maximum: 100 },
        height: { type: 'integer' },
        seed: { type: 'integer' },
      },
    },
    example: { text: 'a fox' },
  },
  output: { modalities: ['image'], media_type: 'application/json', schema: { type: 'object' } },
  returns: 'direct',
  adapter: { operations: [{ name: 'paint', path: '/v2/images', returns: 'json' }], assets: ['images[].data'] },
  alternate: {
    of: PAINTER,
    fields: [
      { from: 'prompt', to: 'text' },
      { from: 'size', to: 'width', as: 'first', values: { auto: null } },
      { from: 'size', to: 'height', as: 'second', values: { auto: null } },
      { from: 'seed', to: 'seed' },
    ],
    drop: [{ field: 'tone', reason: 'south knows no tones — none at all' }],
    refuse: [MASK],
    answer: { picture: { $from: 'images[0].data' }, by: 'south' },
    answer_example: { images: [{ data: 'AAAA' }] },
  },
})

const TASK = {
  id: 'task',
  poll: { path: '/tasks/{id}' },
  interval_ms: 100,
  state: ['state'],
  success: ['done'],
  failed: ['failed'],
}

export const WEST = model('west', 'west/north-painter', {
  input: {
    modalities: ['text'],
    schema: { type: 'object', required: ['words'], properties: { words: TEXT, seed: { type: 'string' } } },
    example: { words: 'a fox' },
  },
  output: { modalities: ['image'], media_type: 'application/json', schema: { type: 'object' } },
  returns: 'poll',
  adapter: { operations: [{ name: 'paint', path: '/tasks', returns: 'task', task: TASK }], assets: ['result.picture'] },
  alternate: {
    of: PAINTER,
    fields: [
      { from: 'prompt', to: 'words' },
      { from: 'seed', to: 'seed', as: 'text' },
    ],
    drop: [
      { field: 'tone', reason: 'west chooses it by itself' },
      { field: 'size', reason: 'west has one size' },
    ],
    refuse: [MASK],
    answer: { picture: { $from: 'result.picture' }, by: 'west' },
    answer_example: { state: 'done', result: { picture: 'AAAA' } },
  },
})

/** The folder of a catalogue with all of it, and the file with keys and addresses. */
export async function writePainters(
  folder: string,
  addresses: Readonly<Record<PainterName, string>>,
  all: object = {},
) {
  const catalog = path.join(folder, 'painters')
  for (const name of PAINTERS) {
    await mkdir(path.join(catalog, name), { recursive: true })
    await writeFile(path.join(catalog, name, 'provider.json'), JSON.stringify(provider(name, addresses[name])))
  }
  for (const file of [NATIVE, SOUTH, WEST]) await writeFile(path.join(catalog, `${file.id}.json`), JSON.stringify(file))
  const providers = path.join(folder, 'providers.json')
  const keys = PAINTERS.map((name) => [name, { key: `key-of-${name}`, base_url: addresses[name] }])
  const settings = { ...Object.fromEntries(keys), '*': { allow_private_network: true, ...all } }
  await writeFile(providers, JSON.stringify(settings))
  return { catalog, providers, settings }
}

/** What a provider does with a submit. All but the first six have begun a generation. */
export const FAULTS = [
  ...(['none', 'forbidden', 'overloaded', '500 before', '502 before', 'hang before'] as const),
  ...(['500 after', '503 after', 'hang', 'garbage', 'half', 'reset'] as const),
] as const
export type Fault = (typeof FAULTS)[number]

/** What it does with a question about a task. `failed`: the task made nothing that anybody gets, and has ended. */
export const POLL_FAULTS = ['none', 'broken', 'garbage', 'reset', 'failed'] as const
export type PollFault = (typeof POLL_FAULTS)[number]

export interface Painter extends AsyncDisposable {
  readonly url: string
  /** How often each prompt was painted. */
  readonly made: Map<string, number>
  requests: number
  /** Nobody answers at its address until it is back. */
  goAway(): Promise<void>
  comeBack(): Promise<void>
}

export async function startPainter(
  name: PainterName,
  faultOf: (prompt: string) => Fault,
  pollFaultOf: (prompt: string) => PollFault = () => 'none',
): Promise<Painter> {
  const made = new Map<string, number>()
  const painter = { made, requests: 0, url: '' }
  const make = (prompt: string) => void made.set(prompt, (made.get(prompt) ?? 0) + 1)
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    painter.requests++
    const tell = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    if (request.method === 'GET') {
      const prompt = decodeURIComponent((request.url ?? '').slice('/tasks/'.length))
      switch (pollFaultOf(prompt)) {
        case 'broken':
          return tell(500, { error: 'broken' })
        case 'garbage':
          response.writeHead(200, { 'content-type': 'text/html' })
          return void response.end('<html>soon</html>')
        case 'reset':
          return void request.socket.destroy()
        case 'failed':
          return tell(200, { state: 'failed', error: 'it came to nothing' })
        default:
          return tell(200, { state: 'done', result: { picture: Buffer.from(prompt).toString('base64') } })
      }
    }
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Submit
    const prompt = body.messages?.[0]?.content ?? body.prompt ?? body.text ?? body.words ?? ''
    const data = Buffer.from(prompt).toString('base64')
    const own = { north: { picture: data, by: 'north' }, south: { images: [{ data }] }, west: { task: prompt } }[name]
    const result = body.messages === undefined ? own : toChat(data, name)
    const fault = faultOf(prompt)
    switch (fault) {
      case 'forbidden':
        return tell(403, { error: 'this account may not' })
      case 'overloaded':
        return tell(503, { error: 'overloaded' })
      case '500 before':
        return tell(500, { error: 'broken' })
      case '502 before':
        return tell(502, { error: 'gateway' })
      case 'hang before':
        return undefined
      default:
        make(prompt)
    }
    switch (fault) {
      case '500 after':
        return tell(500, { error: 'broken' })
      case '503 after':
        return tell(503, { error: 'try again' })
      case 'hang':
        return undefined
      case 'garbage':
        response.writeHead(200, { 'content-type': 'application/json' })
        return void response.end('<html>it worked</html>')
      case 'half':
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
        response.write('{"picture": "')
        return void setImmediate(() => response.destroy())
      case 'reset':
        return void request.socket.destroy()
      default:
        return tell(200, result)
    }
  }
  const open = async (port: number): Promise<Server> => {
    const server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
      answer(request, response).catch(() => response.destroy())
    })
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve))
    return server
  }
  const close = async (server: Server) => {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }
  let server: Server | null = await open(0)
  const { port } = server.address() as AddressInfo
  painter.url = `http://127.0.0.1:${port}`
  return Object.assign(painter, {
    async goAway() {
      if (server !== null) await close(server)
      server = null
    },
    async comeBack() {
      server ??= await open(port)
    },
    async [Symbol.asyncDispose]() {
      if (server !== null) await close(server)
      server = null
    },
  })
}

interface Submit {
  readonly prompt?: string
  readonly text?: string
  readonly words?: string
  /** Of gateways that only know chats. */
  readonly messages?: readonly { readonly content: string }[]
}

function toChat(content: string, model: string): object {
  const choice = { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  return { id: 'chat', object: 'chat.completion', created: 1, model, choices: [choice], usage }
}
