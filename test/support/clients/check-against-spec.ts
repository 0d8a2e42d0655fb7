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

export interface SpecChecks {
  /** `body` is the parsed JSON, or undefined for an answer without a body. Throws with every difference. */
  checkAgainstSpec(method: string, pathTemplate: string, status: number, body?: unknown): void
  /** A value against one named schema of the specification. */
  checkAgainstSchema(name: string, value: unknown): void
}

/** `file` is relative to the folder of specifications. */
export function openSpecChecks(file: string): SpecChecks {
  const document = JSON.parse(readFileSync(new URL(`../../../spec/${file}`, import.meta.url), 'utf8')) as Document
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema(document, 'spec')
  const compiled = new Map<string, ValidateFunction>()

  function checkSchema(reference: string, value: unknown): void {
    let validate = compiled.get(reference)
    if (validate === undefined) {
      validate = ajv.compile({ $ref: reference })
      compiled.set(reference, validate)
    }
    assert.ok(validate(value), `${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`)
  }

  return {
    checkAgainstSpec(method, pathTemplate, status, body) {
      const operation = document.paths[pathTemplate]?.[method.toLowerCase()]
      assert.ok(operation !== undefined, `${method} ${pathTemplate} is not in the specification`)
      const [pointer, response] = findResponse(document, operation.responses, { method, pathTemplate, status })
      const schema = response.content?.['application/json']?.schema
      if (schema === undefined) {
        assert.equal(body, undefined, `${method} ${pathTemplate} ${status} must have no JSON body`)
        return
      }
      checkSchema(`spec#${pointer}/content/application~1json/schema`, body)
    },
    checkAgainstSchema: (name, value) => checkSchema(`spec#/components/schemas/${name}`, value),
  }
}

export const { checkAgainstSpec, checkAgainstSchema } = openSpecChecks('jobs-v2.openapi.json')

function findResponse(
  document: Document,
  responses: Readonly<Record<string, ResponseNode>>,
  { method, pathTemplate, status }: { method: string; pathTemplate: string; status: number },
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
