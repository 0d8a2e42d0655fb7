/**
 * A provider of conversations in OpenAI's form that counts what it makes. The last words of a conversation say what it does: they are a
 * fault of its, or what it answers.
 */
import type { ServerResponse } from 'node:http'
import { type HttpFake, readBody, startHttpFake } from './http-fake.ts'

export interface ChatFake extends HttpFake {
  readonly requests: { readonly path: string; readonly key: string; readonly text: string }[]
  /** How often each last message was answered, in whole or in part. */
  readonly made: Map<string, number>
  /** Lets the streams go on that wait for it, those of "gate". */
  open(): void
}

/** What every answer says it used. */
export const USED = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 }

interface Asked {
  readonly model: string
  readonly messages: readonly { readonly content: unknown }[]
  readonly stream?: boolean
}

export async function startChatFake(): Promise<ChatFake> {
  const requests: ChatFake['requests'] = []
  const made = new Map<string, number>()
  const gate: Gate = []
  const fake = await startHttpFake(async (request, response) => {
    const text = (await readBody(request)).toString()
    requests.push({ path: request.url ?? '', key: request.headers.authorization ?? '', text })
    const { model, messages, stream = false } = JSON.parse(text) as Asked
    const said = String(messages.at(-1)?.content ?? '')
    // Only at OpenAI, whose models have no maker before their names.
    const isHere = !said.includes('elsewhere') || model.includes('/')
    if (said === 'forbidden' || !isHere)
      return tell(response, 401, { error: { message: 'Incorrect API key provided' } })
    if (said === 'broken before') return tell(response, 502, { error: { message: 'bad gateway' } })
    if (said === 'too long')
      return tell(response, 400, { error: { message: 'the context is too long', code: 'context_length_exceeded' } })
    made.set(said, (made.get(said) ?? 0) + 1)
    if (said === 'broken after') return tell(response, 500, { error: { message: 'broken' } })
    if (stream) return sendEvents(response, said, gate)
    const usage = said.startsWith('costs') ? { ...USED, cost: 0.000321 } : USED
    const message = { role: 'assistant', content: said, refusal: null }
    const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }]
    return tell(response, 200, { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model, choices, usage })
  })
  return Object.assign(fake, { requests, made, open: () => gate.splice(0).forEach((go) => void go()) })
}

type Gate = (() => void)[]

/** An answer to these words, byte for byte. `costs`: as OpenRouter says it. */
export function eventsOf(said: string, more: object = {}): string {
  const chunk = (choices: object[], usage: object | null) =>
    `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, choices, usage })}\n\n`
  const words = said
    .split(/(?<= )/)
    .map((content) => chunk([{ index: 0, delta: { content }, finish_reason: null }], null))
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(PICTURE_LENGTH)}` } }
  const drawn = chunk([{ index: 0, delta: { images: [image] }, finish_reason: null }], null)
  const end = [chunk([{ index: 0, delta: {}, finish_reason: 'stop' }], null), chunk([], { ...USED, ...more })]
  const made = said.startsWith('picture') ? [...words, drawn] : words
  return [': a comment\n\n', ...made, ...end, 'data: [DONE]\n\n'].join('')
}

const PICTURE_LENGTH = 6 * 1024 * 1024

/** Faults of a stream are its first words; all else is answered. */
async function sendEvents(response: ServerResponse, said: string, gate: Gate): Promise<void> {
  if (said === 'no events') return tell(response, 200, { error: { message: 'no streams today' } })
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  const whole = eventsOf(said, said.startsWith('costs') ? { cost: 0.000321 } : {})
  const [comment, first = ''] = whole.split(/(?<=\n\n)/)
  // Cut where nobody would cut it.
  const half = `${comment}${first}`.length + (said.startsWith('error') ? 0 : 20)
  if (said.startsWith('mixed')) return void response.end(`${comment}${first}data: <html>\n\n`)
  response.write(whole.slice(0, said.startsWith('nothing') ? 5 : half))
  await new Promise((resolve) => setImmediate(resolve))
  if (said.startsWith('nothing') || said.startsWith('half')) return void response.destroy()
  if (said.startsWith('silent')) return
  if (said.startsWith('garbage')) return void response.end('data: <html>\n\n')
  if (said.startsWith('error')) return void response.end('data: {"error":{"message":"overloaded"}}\n\n')
  if (said.startsWith('gate')) await new Promise<void>((resolve) => void gate.push(resolve))
  response.end(whole.slice(half))
}

function tell(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
