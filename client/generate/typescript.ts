/** A module of TypeScript for each API: its types, and one function for each operation, so that bundlers keep only what is called. */

import { type Document, JSON_TYPE, type Operation, type Result, readOperations } from '../../lib/openapi/operations.ts'
import type { Api } from './apis.ts'
import { toDeclaration, toDoc, toType } from './typescript-types.ts'

const ASK: Readonly<Record<Result['kind'], string>> = {
  json: 'askJson',
  nothing: 'askNothing',
  response: 'askResponse',
  events: 'askEvents',
}

export function toModule({ about }: Api, document: Document): string {
  const operations = readOperations(document)
  const types = Object.entries(document.components.schemas).map(([name, schema]) => toDeclaration(name, schema))
  const functions = operations.map(toFunction)
  const body = [...types, ...functions].join('\n')
  const asked = new Set(operations.map(({ result }) => ASK[result.kind]))
  return `/** ${about}, version ${document.info.version}. Made from the specification by \`scripts/build-client.ts\`. */
${toImports(asked, body)}
${body}`
}

function toImports(asked: ReadonlySet<string>, body: string): string {
  const values = ['askJson', 'askNothing', 'askResponse'].filter((name) => asked.has(name))
  const types = ['Bytes', 'CallOptions', 'Client'].filter((name) => new RegExp(`\\b${name}\\b`).test(body))
  const core = `import { ${[...values, ...types.map((name) => `type ${name}`)].join(', ')} } from './core.ts'`
  if (!asked.has('askEvents')) return core
  const event = /\bStreamEvent\b/.test(body) ? ', type StreamEvent' : ''
  return `${core}\nimport { askEvents${event} } from './events.ts'`
}

function toFunction(operation: Operation): string {
  const { name, summary, description, body, arguments: args } = operation
  const input = `${name[0].toUpperCase()}${name.slice(1)}Input`
  const isNeeded = body?.isRequired === true || args.some(({ isRequired }) => isRequired)
  const { result } = operation
  const answer = toAnswer(result)
  const call = `${ASK[result.kind]}${result.kind === 'json' || result.kind === 'events' ? `<${answer}>` : ''}`
  const returned = result.kind === 'events' ? `AsyncGenerator<${answer}, void, undefined>` : `Promise<${answer}>`
  const doc = [summary === '' ? '' : `${summary.replace(/\.$/, '')}.`, description].filter((text) => text !== '')
  return `${toInput(input, operation)}
${toDoc(doc.join('\n\n'), '')}export function ${name}(client: Client, input: ${input}${isNeeded ? '' : ' = {}'}, options?: CallOptions): ${returned} {
  return ${call}(client, ${toRoute(operation)}, input, options)
}
`
}

/** As an interface even where it is empty today: a later argument then is no other type. */
function toInput(name: string, { arguments: args, body }: Operation): string {
  const members = args.map(
    ({ name: argument, isRequired, schema, description }) =>
      `${toDoc(description, '  ')}  readonly ${argument}${isRequired ? '' : '?'}: ${toType(schema, '  ')}\n`,
  )
  if (body !== null) members.push(`  readonly body${body.isRequired ? '' : '?'}: ${toBodyType(body)}\n`)
  return `export interface ${name} {${members.length === 0 ? '' : `\n${members.join('')}`}}\n`
}

function toBodyType({ types, schema }: NonNullable<Operation['body']>): string {
  const isFile = (type: string) => type !== JSON_TYPE && type !== 'multipart/form-data'
  const described = isFile(types[0]) ? [] : [toType(schema, '  ')]
  return [...described, ...(types.some(isFile) ? ['Bytes'] : [])].join(' | ')
}

function toAnswer(result: Result): string {
  if (result.kind === 'nothing') return 'void'
  if (result.kind === 'response') return 'Response'
  if (result.kind === 'json') return `${toType(result.schema, '')}${result.orNull ? ' | null' : ''}`
  const events = Object.entries(result.events)
  if (events.length === 0) return 'StreamEvent'
  return events
    .map(([name, schema]) => `{ readonly event: '${name}'; readonly data: ${toType(schema, '')} }`)
    .join(' | ')
}

function toRoute({ method, path, arguments: args, body }: Operation): string {
  const query = args.filter((each) => each.in === 'query').map(({ name }) => `'${name}'`)
  const headers = args.filter((each) => each.in === 'header').map(({ name, wire }) => `${name}: '${wire}'`)
  const bodyType = body === null || body.types[0] === JSON_TYPE ? null : body.types[0]
  const members = [
    `method: '${method}'`,
    `path: '${path}'`,
    ...(query.length === 0 ? [] : [`query: [${query.join(', ')}]`]),
    ...(headers.length === 0 ? [] : [`headers: { ${headers.join(', ')} }`]),
    ...(bodyType === null ? [] : [`bodyType: '${bodyType}'`]),
  ]
  return `{ ${members.join(', ')} }`
}
