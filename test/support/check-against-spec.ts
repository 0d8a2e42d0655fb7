/** Judges an answer by the contract: the documented status of the operation, and a body that its schema accepts. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

interface ResponseNode {
  readonly $ref?: string
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>
}
interface Document {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, ResponseNode>> }>>>
  >
  readonly components: { readonly responses: Readonly<Record<string, ResponseNode>> }
}

const document = JSON.parse(
  readFileSync(new URL('../../spec/jobs-v2.openapi.json', import.meta.url), 'utf8'),
) as Document
const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addSchema(document, 'spec')
const compiled = new Map<string, ValidateFunction>()

/** `body` is the parsed JSON, or undefined for an answer without a body. Throws with every difference. */
export function checkAgainstSpec(method: string, pathTemplate: string, status: number, body?: unknown): void {
  const operation = document.paths[pathTemplate]?.[method.toLowerCase()]
  assert.ok(operation !== undefined, `${method} ${pathTemplate} is not in the specification`)
  const [pointer, response] = findResponse(operation.responses, method, pathTemplate, status)
  const schema = response.content?.['application/json']?.schema
  if (schema === undefined) {
    assert.equal(body, undefined, `${method} ${pathTemplate} ${status} must have no JSON body`)
    return
  }
  checkSchema(`spec#${pointer}/content/application~1json/schema`, body)
}

/** A value against one named schema of the specification. */
export function checkAgainstSchema(name: string, value: unknown): void {
  checkSchema(`spec#/components/schemas/${name}`, value)
}

function checkSchema(reference: string, value: unknown): void {
  let validate = compiled.get(reference)
  if (validate === undefined) {
    validate = ajv.compile({ $ref: reference })
    compiled.set(reference, validate)
  }
  assert.ok(validate(value), `${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`)
}

function findResponse(
  responses: Readonly<Record<string, ResponseNode>>,
  method: string,
  pathTemplate: string,
  status: number,
): [pointer: string, response: ResponseNode] {
  const response = responses[String(status)]
  assert.ok(response !== undefined, `${method} ${pathTemplate} has no documented status ${status}`)
  if (response.$ref === undefined) {
    const path = pathTemplate.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D')
    return [`/paths/${path}/${method.toLowerCase()}/responses/${status}`, response]
  }
  const name = response.$ref.slice(response.$ref.lastIndexOf('/') + 1)
  return [`/components/responses/${name}`, document.components.responses[name]]
}
