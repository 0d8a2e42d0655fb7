/**
 * A surface's contract, loaded once. The same document checks requests, is served to callers, renders the reference page and
 * tells which methods a path has.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { type LoadOptions, loadOpenApi, type OpenApiDocument, type ServedDocument } from './openapi-document.ts'

/** What is wrong with a value, naming the field under `label`, or null. Never repeats a value: it may be a secret. */
export type ContractCheck = (schemaName: string, value: unknown, label: string) => string | null

export interface Contract extends ServedDocument {
  readonly check: ContractCheck
}

interface ContractOptions extends LoadOptions {
  /** The document, as a file. */
  readonly source: URL
  /** The schemas that requests are checked against. */
  readonly requestSchemas: readonly string[]
}

export function openContract({ source, requestSchemas, ...options }: ContractOptions): Contract {
  const served = loadOpenApi(source, options)
  return { ...served, check: compileChecks(served.document, requestSchemas) }
}

/** Each schema is compiled when the first request needs it: compiling all of them would take a good part of a start. */
function compileChecks(document: OpenApiDocument, requestSchemas: readonly string[]): ContractCheck {
  const names = new Set(requestSchemas)
  const validators = new Map<string, ValidateFunction>()
  let ajv: Ajv2020 | null = null

  function validatorOf(name: string): ValidateFunction {
    const known = validators.get(name)
    if (known !== undefined) return known
    if (!names.has(name)) throw new Error(`the schema ${name} is not among those of requests`)
    ajv ??= openSchemas(document)
    const validate = ajv.compile({ $ref: `spec#/components/schemas/${name}` })
    validators.set(name, validate)
    return validate
  }

  return (schemaName, value, label) => {
    const validate = validatorOf(schemaName)
    if (validate(value)) return null
    const errors = validate.errors ?? []
    return toProblem(errors.find((error) => wordsOf(error) !== null) ?? findTelling(errors), label)
  }
}

function openSchemas(document: OpenApiDocument): Ajv2020 {
  // OpenAPI's own keywords stand beside the schema ones, so unknown keywords are no mistake here.
  // That the document itself is sound is known: checking it against the language of schemas would take most of the time here.
  const ajv = new Ajv2020({
    strict: false,
    validateSchema: false,
    validateFormats: false,
    allErrors: false,
    verbose: true,
  })
  ajv.addSchema(document, 'spec')
  return ajv
}

/**
 * The error that says most. Where a value may have one of several forms, every form complains of it: the one that it comes close to is
 * told, and all of them when it is of another type altogether.
 */
function findTelling(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const choice = errors.find(({ keyword }) => keyword === 'anyOf')
  if (choice === undefined) return errors[0]
  const own = errors.filter((error) => error !== choice)
  const isClose = ({ keyword, instancePath }: ErrorObject) => keyword !== 'type' || instancePath !== choice.instancePath
  const types = own.map(({ params }) => String(params['type']))
  return own.find(isClose) ?? { ...choice, message: `must be ${[...new Set(types)].join(' or ')}` }
}

/** What the schema itself says about a value that does not fit, where a pattern would tell a person nothing. */
function wordsOf({ parentSchema }: ErrorObject): string | null {
  const words: unknown = parentSchema?.['x-error']
  return typeof words === 'string' ? words : null
}

function toProblem(error: ErrorObject | undefined, label: string): string {
  if (error === undefined) return `${label} is not valid`
  const where = label + error.instancePath.replaceAll('/', '.')
  const { additionalProperty, allowedValues } = error.params as {
    readonly additionalProperty?: string
    readonly allowedValues?: readonly unknown[]
  }
  if (additionalProperty !== undefined)
    return `${where} has a key that is not allowed: ${JSON.stringify(additionalProperty.slice(0, 64))}${toKnown(error)}`
  if (allowedValues !== undefined) return `${where} must be one of ${allowedValues.join(', ')}`
  return `${where} ${wordsOf(error) ?? error.message ?? 'is not valid'}`
}

/** The keys that are allowed instead, as far as the schema names them. */
function toKnown({ parentSchema }: ErrorObject): string {
  const names = Object.keys((parentSchema as { readonly properties?: object } | undefined)?.properties ?? {})
  return names.length === 0 ? '' : `; allowed are ${names.join(', ')}`
}
