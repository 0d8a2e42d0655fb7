/** Answers that are written without the framework: a response object, or nothing but a socket. */
import type { ServerResponse } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { ErrorAnswer } from '../surface.ts'

/** `headers` are the common ones, as name, value, name, value. */
export function writeAnswer(response: ServerResponse, headers: readonly string[], answer: ErrorAnswer): void {
  response.writeHead(answer.status, withOwn(headers, answer))
  response.end(answer.body)
}

/** The whole answer as text, for a connection that ends with it. */
export function encodeAnswer(headers: readonly string[], answer: ErrorAnswer): string {
  const all = [...withOwn(headers, answer), 'Connection', 'close']
  let text = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\n`
  for (let at = 0; at < all.length; at += 2) text += `${all[at]}: ${all[at + 1]}\r\n`
  return `${text}\r\n${answer.body}`
}

function withOwn(headers: readonly string[], { headers: own, body }: ErrorAnswer): string[] {
  return [...headers, ...Object.entries(own).flat(), 'Content-Length', String(Buffer.byteLength(body))]
}
