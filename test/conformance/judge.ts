/** Finds where an answer differs from what its document promises. */
import type { Answer } from '../support/clients/call.ts'
import type { GeneratedRequest } from './requests.ts'
import type { DeclaredAnswer, Operation, ServedDocument } from './served-document.ts'

/** Whether a refusal means that the request itself was malformed, not that what it asked for is impossible. */
export type IsMalformed = (answer: Answer) => boolean

export function judge(
  document: ServedDocument,
  operation: Operation,
  request: GeneratedRequest,
  answer: Answer,
): string[] {
  const { status } = answer
  if (status >= 500 && operation.answers[String(status)] === undefined) return [`answered ${status}`]
  if (status === 500) return ['answered 500']
  const declared = operation.answers[String(status)] ?? operation.answers['default']
  if (declared === undefined) return [`status ${status} is not declared`]
  return [...judgeHeaders(document, declared, answer), ...judgeBody(document, declared, request.method, answer)]
}

function judgeHeaders(document: ServedDocument, { headers }: DeclaredAnswer, answer: Answer): string[] {
  return Object.entries(headers).flatMap(([name, { required = false, schema }]) => {
    const text = answer.headers[name]
    if (text === undefined) return required ? [`the header ${name} is missing on ${answer.status}`] : []
    const type = schema === undefined ? undefined : document.resolve(schema)['type']
    const value = type === 'integer' || type === 'number' ? Number(text) : type === 'boolean' ? text === 'true' : text
    const fault = schema === undefined ? null : document.faultOf(schema, value)
    return fault === null ? [] : [`the header ${name} on ${answer.status}: ${fault}`]
  })
}

function judgeBody(document: ServedDocument, { content }: DeclaredAnswer, method: string, answer: Answer): string[] {
  const type = answer.headers['content-type']
  const types = Object.keys(content)
  if (types.length === 0) {
    const isBare = type === undefined && answer.text === ''
    return isBare || method === 'HEAD' ? [] : [`${answer.status} declares no body and came with ${type}`]
  }
  const bare = String(type).split(';', 1)[0].trim().toLowerCase()
  const found = types.find((one) => one.toLowerCase() === bare) ?? types.find((one) => one === '*/*')
  if (found === undefined) return [`the content type ${type} is not declared for ${answer.status}`]
  if (bare !== 'application/json' || method === 'HEAD' || found === '*/*') return []
  const fault = document.faultOf(content[found], answer.json)
  return fault === null ? [] : [`the body of ${answer.status}: ${fault}`]
}
