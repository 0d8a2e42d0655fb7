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
}

/** What every answer says it used. */
export const USED = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 }

interface Asked {
  readonly model: string
  readonly messages: readonly { readonly content: unknown }[]
}

export async function startChatFake(): Promise<ChatFake> {
  const requests: ChatFake['requests'] = []
  const made = new Map<string, number>()
  const fake = await startHttpFake(async (request, response) => {
    const text = (await readBody(request)).toString()
    requests.push({ path: request.url ?? '', key: request.headers.authorization ?? '', text })
    const { model, messages } = JSON.parse(text) as Asked
    const said = String(messages.at(-1)?.content ?? '')
    if (said === 'forbidden') return tell(response, 401, { error: { message: 'Incorrect API key provided' } })
    if (said === 'broken before') return tell(response, 502, { error: { message: 'bad gateway' } })
    if (said === 'too long')
      return tell(response, 400, { error: { message: 'the context is too long', code: 'context_length_exceeded' } })
    made.set(said, (made.get(said) ?? 0) + 1)
    if (said === 'broken after') return tell(response, 500, { error: { message: 'broken' } })
    const message = { role: 'assistant', content: said, refusal: null }
    const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }]
    return tell(response, 200, { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model, choices, usage: USED })
  })
  return Object.assign(fake, { requests, made })
}

function tell(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
