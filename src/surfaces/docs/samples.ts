/**
 * How each operation is asked with what its document gives as examples: with curl, and in TypeScript and Python through the clients that are
 * made from the same document, or by the means of the language where an API has no client. Each sample is a whole program. Pure.
 */
import { type Argument, JSON_TYPE, type Operation, toPythonName, toSnakeCase } from '../../../lib/openapi/operations.ts'
import { JSON_TEXT, PYTHON, TYPESCRIPT, toLiteral } from '../../../lib/openapi/sample-text.ts'

interface Sample {
  readonly label: 'curl' | 'TypeScript' | 'Python'
  readonly source: string
}

export interface SampledApi {
  /** Where the paths of the document begin. */
  readonly baseUrl: string
  /** The client's module; null: there is none. */
  readonly door: string | null
  /** Where the client for Python is had. */
  readonly pythonUrl: string
  readonly needsCredentials: boolean
}

interface Example {
  /** Of arguments, by their names. */
  readonly arguments: Readonly<Record<string, unknown>>
  readonly body: unknown
}

const FORM = 'multipart/form-data'

export function toSamples(operation: Operation, api: SampledApi): readonly Sample[] {
  const { arguments: args, body } = operation
  const given = args.flatMap(({ name, example: value }) => (value === undefined ? [] : [[name, value] as const]))
  const example = { arguments: Object.fromEntries(given), body: body?.example }
  return [
    { label: 'curl', source: toCurl(operation, example, api) },
    { label: 'TypeScript', source: (api.door === null ? toFetch : toTypescript)(operation, example, api) },
    { label: 'Python', source: (api.door === null ? toUrllib : toPython)(operation, example, api) },
  ]
}

function toCurl(operation: Operation, example: Example, api: SampledApi): string {
  const { method, body, result } = operation
  const bytes = body !== null && !isJson(body) && body.types[0] !== FORM && example.body !== undefined
  const flags = [
    ...(method === 'HEAD' ? ['-I'] : []),
    ...(result.kind === 'events' ? ['-N'] : []),
    ...(result.kind === 'response' && method !== 'HEAD' ? ['-L', '-o answer'] : []),
    // With a body curl posts by itself.
    ...(method === 'GET' || method === 'HEAD' || (method === 'POST' && example.body !== undefined)
      ? []
      : [`-X ${method}`]),
  ]
  const lines = [
    `curl ${[...flags, quoteForShell(toUrl(operation, example, api))].join(' ')}`,
    ...(api.needsCredentials ? ['-H "Authorization: Bearer $ATELIER_TOKEN"'] : []),
    ...headersOf(operation, example).map(([name, value]) => `-H ${quoteForShell(`${name}: ${value}`)}`),
    ...toCurlBody(operation, example),
  ]
  const command = lines.join(' \\\n  ')
  return bytes ? `printf '%s' ${quoteForShell(String(example.body))} | ${command}` : command
}

function toCurlBody({ body }: Operation, example: Example): string[] {
  if (body === null || example.body === undefined) return []
  const type = body.types[0]
  if (type === FORM) {
    // A file by its name in curl's own words; the text is what it holds.
    return formParts(example.body, body.files).map(({ name, value, isFile }) =>
      isFile
        ? `-F ${quoteForShell(`${name}=${value};filename=${name}.txt`)}`
        : `-F ${quoteForShell(`${name}=${value}`)}`,
    )
  }
  if (type !== JSON_TYPE) return [`-H ${quoteForShell(`Content-Type: ${type}`)}`, '--data-binary @-']
  return [`-H 'Content-Type: ${JSON_TYPE}'`, `-d ${quoteForShell(toLiteral(example.body, JSON_TEXT))}`]
}

function toTypescript(operation: Operation, example: Example, { baseUrl, door, needsCredentials }: SampledApi): string {
  const { name, result, arguments: args, body } = operation
  const given: [string, string][] = args
    .filter((each) => example.arguments[each.name] !== undefined)
    .map((each) => [each.name, toLiteral(example.arguments[each.name], TYPESCRIPT, '  ')])
  if (body !== null && example.body !== undefined) given.push(['body', toTypescriptBody(operation, example)])
  const input = given.length === 0 ? '' : `, ${toObject(given)}`
  const imports =
    door === 'atelier/client'
      ? `import { connect, ${name} } from '${door}'`
      : ["import { connect } from 'atelier/client'", `import { ${name} } from '${door}'`].join('\n')
  const call = `${name}(client${input})`
  const use = {
    json: `console.log(await ${call})`,
    nothing: `await ${call}`,
    response: `const response = await ${call}\nconsole.log(response.status, await response.blob())`,
    events: `for await (const { event, data } of ${call}) console.log(event, data)`,
  }
  return `${imports}\n\nconst client = connect({ baseUrl: '${baseUrl}' })${needsCredentials ? ' // the token: ATELIER_TOKEN' : ''}\n${use[result.kind]}`
}

function toObject(members: readonly (readonly [string, string])[]): string {
  const short = `{ ${members.map(([name, text]) => `${name}: ${text}`).join(', ')} }`
  if (short.length < 80 && !short.includes('\n')) return short
  return `{\n${members.map(([name, text]) => `  ${name}: ${text},\n`).join('')}}`
}

function toTypescriptBody({ body }: Operation, example: Example): string {
  const blob = (value: unknown) => `new Blob([${toLiteral(value, TYPESCRIPT)}])`
  if (body === null || isJson(body)) return toLiteral(example.body, TYPESCRIPT, '  ')
  if (body.types[0] !== FORM) return blob(example.body)
  const members = Object.entries(example.body as object).map(
    ([name, value]) => `    ${name}: ${body.files.includes(name) ? blob(value) : toLiteral(value, TYPESCRIPT)},\n`,
  )
  return `{\n${members.join('')}  }`
}

function toPython(
  operation: Operation,
  example: Example,
  { baseUrl, door, pythonUrl, needsCredentials }: SampledApi,
): string {
  const { name, result, arguments: args, body } = operation
  const given = args
    .filter((each) => example.arguments[each.name] !== undefined)
    .map((each) => `${toPythonName(each.name)}=${toLiteral(example.arguments[each.name], PYTHON)}`)
  if (body !== null && example.body !== undefined) given.push(`body=${toPythonBody(operation, example)}`)
  const room = door === 'atelier/client' ? 'client' : `client.${String(door).split('/').at(-1)}`
  const call = `${room}.${toSnakeCase(name)}(${given.join(', ')})`
  const use = {
    json: `print(${call})`,
    nothing: call,
    response: `with ${call} as response:\n    print(response.status, len(response.read()))`,
    events: `for event, data in ${call}:\n    print(event, data)`,
  }
  return `from atelier_client import Client  # curl -O ${pythonUrl}\n\nclient = Client("${baseUrl}")${needsCredentials ? '  # the token: ATELIER_TOKEN' : ''}\n${use[result.kind]}`
}

function toPythonBody({ body }: Operation, example: Example): string {
  const bytes = (value: unknown) => `b${toLiteral(String(value), PYTHON)}`
  if (body === null || isJson(body)) return toLiteral(example.body, PYTHON)
  if (body.types[0] !== FORM) return bytes(example.body)
  const members = Object.entries(example.body as object).map(
    ([name, value]) => `"${name}": ${body.files.includes(name) ? bytes(value) : toLiteral(value, PYTHON)}`,
  )
  return `{${members.join(', ')}}`
}

function toFetch(operation: Operation, example: Example, api: SampledApi): string {
  const headers = [
    ...(api.needsCredentials ? [['Authorization', "'Bearer ' + process.env.ATELIER_TOKEN"]] : []),
    ...headersOf(operation, example).map(([name, value]) => [name, toLiteral(value, TYPESCRIPT)]),
  ]
  const { method, body, result } = operation
  const isText = body !== null && isJson(body) && example.body !== undefined
  const members = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    ...(headers.length === 0
      ? []
      : [`headers: { ${headers.map(([name, value]) => `${toKey(name)}: ${value}`).join(', ')} }`]),
    ...(isText ? [`body: JSON.stringify(${toLiteral(example.body, TYPESCRIPT, '  ')})`] : []),
  ]
  const init = members.length === 0 ? '' : `, {\n${members.map((member) => `  ${member},\n`).join('')}}`
  const read = result.kind === 'json' ? 'json' : 'text'
  return `const response = await fetch('${toUrl(operation, example, api)}'${init})\nconsole.log(response.status, await response.${read}())`
}

const toKey = (name: string) => (/^\w+$/.test(name) ? name : `'${name}'`)

function toUrllib(operation: Operation, example: Example, api: SampledApi): string {
  const headers = [
    ...(api.needsCredentials ? ['"Authorization": "Bearer " + os.environ["ATELIER_TOKEN"]'] : []),
    ...headersOf(operation, example).map(([name, value]) => `"${name}": ${toLiteral(value, PYTHON)}`),
  ]
  const { method, body, result } = operation
  const isText = body !== null && isJson(body) && example.body !== undefined
  const lines = [
    `import ${['json', ...(api.needsCredentials ? ['os'] : []), 'urllib.request'].filter((name) => name !== 'json' || isText || result.kind === 'json').join(', ')}`,
    '',
    ...(isText ? [`body = ${toLiteral(example.body, PYTHON)}`] : []),
    `request = urllib.request.Request("${toUrl(operation, example, api)}"${isText ? ', json.dumps(body).encode()' : ''}, headers={${headers.join(', ')}}, method="${method}")`,
    'with urllib.request.urlopen(request) as response:',
    result.kind === 'json' ? '    print(json.load(response))' : '    print(response.status, response.read())',
  ]
  return lines.join('\n')
}

function isJson(body: NonNullable<Operation['body']>): boolean {
  return body.types[0] === JSON_TYPE
}

function formParts(body: unknown, files: readonly string[]) {
  const parts = Object.entries(body as object).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((each) => ({
      name,
      value: String(each),
      isFile: files.includes(name),
    })),
  )
  // What is said of a file comes before it.
  return [...parts.filter(({ isFile }) => !isFile), ...parts.filter(({ isFile }) => isFile)]
}

function toUrl({ path, arguments: args }: Operation, example: Example, { baseUrl }: SampledApi): string {
  const given = (name: string) => example.arguments[name]
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(given(name) ?? name.toUpperCase())),
  )
  const pairs = args.filter((each) => each.in === 'query').flatMap((each) => toPairs(each, given(each.name)))
  return baseUrl + filled + (pairs.length === 0 ? '' : `?${pairs.join('&')}`)
}

function toPairs({ wire }: Argument, value: unknown): string[] {
  if (value === undefined) return []
  if (Array.isArray(value)) return [`${wire}=${value.map((each) => encodeURIComponent(String(each))).join(',')}`]
  if (typeof value !== 'object' || value === null) return [`${wire}=${encodeURIComponent(String(value))}`]
  return Object.entries(value).map(([key, each]) => `${wire}%5B${key}%5D=${encodeURIComponent(String(each))}`)
}

function headersOf({ arguments: args }: Operation, example: Example): [string, string][] {
  return args
    .filter((each) => each.in === 'header' && example.arguments[each.name] !== undefined)
    .map((each) => [each.wire, String(example.arguments[each.name])])
}

function quoteForShell(text: string): string {
  return /^[\w.:/@=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
