/**
 * A client of the Model Router that checks every answer against the specification, and for the headers that every answer must
 * have under both brands.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { type Answer, type CallOptions, call } from './call.ts'

interface SpecResponse {
  readonly headers: Readonly<Record<string, object>>
  readonly content?: Readonly<Record<string, { readonly schema: object }>>
}
interface Spec {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, SpecResponse>> }>>>
  >
}

const spec = JSON.parse(readFileSync(new URL('../../../spec/router.openapi.json', import.meta.url), 'utf8')) as Spec
const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addSchema(spec as object, 'router')
const compiled = new Map<object, ValidateFunction>()

const TEMPLATES = Object.keys(spec.paths)
  .map((template) => ({
    template,
    pattern: new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  }))
  // The path with fewer parameters is the more specific one.
  .toSorted((a, b) => a.template.split('{').length - b.template.split('{').length)
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const BRANDED = ['error-type', 'upstream-status', 'credits-used']

export function checkRouterAnswer(method: string, path: string, answer: Answer): void {
  const where = `${method} ${path} -> ${answer.status} ${answer.text.slice(0, 300)}`
  const { headers } = answer
  assert.match(String(headers['x-service-request-id']), UUID, where)
  assert.equal(headers['x-comfy-request-id'], headers['x-service-request-id'], where)
  for (const name of BRANDED)
    assert.equal(headers[`x-comfy-${name}`], headers[`x-service-${name}`], `${name} of ${where}`)
  assert.equal(headers['x-content-type-options'], 'nosniff', where)
  if (headers['retry-after'] !== undefined) assert.match(headers['retry-after'], /^[1-9]\d*$/, where)
  if (answer.status >= 400 && method !== 'HEAD') {
    assert.equal(headers['content-type'], 'application/json', where)
    assert.equal(answer.json.error_type, headers['x-service-error-type'], where)
  } else assert.equal(headers['x-service-error-type'], undefined, where)
  if (answer.status === 304) assert.equal(answer.bytes.length, 0, where)
  checkAgainstRouterSpec(method, path.split('?', 1)[0], answer, where)
}

function checkAgainstRouterSpec(method: string, path: string, answer: Answer, where: string): void {
  const template = TEMPLATES.find(({ pattern }) => pattern.test(path))?.template
  const operation = template === undefined ? undefined : spec.paths[template][method.toLowerCase()]
  if (operation === undefined) return
  const response = operation.responses[String(answer.status)]
  assert.ok(response !== undefined, `an undocumented status: ${where}`)
  const schema = response.content?.['application/json']?.schema
  if (schema === undefined) return
  let validate = compiled.get(schema)
  if (validate === undefined) {
    validate = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"router#/')))
    compiled.set(schema, validate)
  }
  assert.ok(validate(answer.json), `${where}: ${JSON.stringify(validate.errors)}`)
}

export interface RunOptions {
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
}

export class RouterClient {
  readonly url: string
  /** What every request of this caller carries. */
  readonly headers: Readonly<Record<string, string>>

  constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
    this.url = url
    this.headers = headers
  }

  async call(path: string, options: CallOptions = {}): Promise<Answer> {
    const answer = await call(this.url, path, { ...options, headers: { ...this.headers, ...options.headers } })
    checkRouterAnswer(options.method ?? 'GET', path, answer)
    return answer
  }

  /** A text is sent as it stands. */
  post(path: string, body: unknown, { key, headers = {} }: RunOptions = {}): Promise<Answer> {
    const keyed = key === undefined ? headers : { ...headers, 'idempotency-key': key }
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return this.call(path, { method: 'POST', headers: { 'content-type': 'application/json', ...keyed }, body: text })
  }

  run(model: string, body: unknown, options: RunOptions = {}): Promise<Answer> {
    return this.post(`/v2/models/${model}`, body, options)
  }
}

export function refusedWith(answer: Answer, status: number, errorType: string): Answer {
  assert.deepEqual([answer.status, answer.json?.error_type], [status, errorType], answer.text)
  return answer
}
