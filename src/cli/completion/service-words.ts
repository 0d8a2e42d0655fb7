/** What the service knows about endpoints, for whoever types: asked with little patience, and nothing at all when anything is wrong. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { askEndpoints, type EndpointWire, pathOf } from '../endpoints/endpoint-api.ts'
import { RunClient } from '../server/client.ts'
import { readServer } from '../server/server-flags.ts'
import type { Terminal } from '../terminal.ts'
import type { InputWord, ServiceWords, Typed, Word } from './complete-words.ts'

// As long as somebody waits for a key to answer.
const PATIENCE_MS = 1500
const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

export function createServiceWords(values: Typed['values'], terminal: Terminal): ServiceWords {
  const signal = AbortSignal.timeout(PATIENCE_MS)
  async function ask<Answer>(path: string): Promise<Answer> {
    const server = readServer(values, terminal)
    if (server === null) throw new Error('no server')
    const client = new RunClient(server)
    return askEndpoints<Answer>({ call: (link, init) => client.call(link, { ...init, signal }) }, path)
  }
  const orNothing = <Found>(asked: Promise<readonly Found[]>): Promise<readonly Found[]> => asked.catch(() => [])

  async function readEndpoints(beginning: string): Promise<readonly Word[]> {
    // They come in the order of their names, and one of this very name is before those that go on.
    const query = new URLSearchParams({ limit: '100', ...(beginning !== '' && { after: beginning }) })
    const [page, exact] = await Promise.all([
      ask<{ readonly endpoints: readonly EndpointWire[] }>(`?${query}`),
      NAME.test(beginning) ? ask<EndpointWire>(pathOf(beginning)).catch(() => null) : null,
    ])
    return [...(exact === null ? [] : [exact]), ...page.endpoints].map(({ name, title }) => ({
      text: name,
      about: title,
    }))
  }

  async function readVersions(name: string): Promise<readonly Word[]> {
    const { aliases, latest_version: latest, current_version: current } = await ask<EndpointWire>(pathOf(name))
    const named = Object.entries(aliases).map(([text, version]) => ({ text, about: `version ${version}` }))
    const numbers = [...new Set([current, latest])].map((version) => ({ text: String(version) }))
    return [...named, { text: 'latest', about: `version ${latest}` }, ...numbers]
  }

  async function readInputs(reference: string): Promise<readonly InputWord[]> {
    const [name, version] = reference.split('@')
    const query = version === undefined ? '' : `?${new URLSearchParams({ version })}`
    const { properties } = await ask<JsonObject>(`${pathOf(name, 'schema')}${query}`)
    return Object.entries(isJsonObject(properties) ? properties : {}).flatMap(([text, schema]) =>
      isJsonObject(schema) ? [toInputWord(text, schema)] : [],
    )
  }

  return {
    endpoints: (beginning) => orNothing(readEndpoints(beginning)),
    versions: (name) => orNothing(readVersions(name)),
    inputs: (reference) => orNothing(readInputs(reference)),
  }
}

function toInputWord(text: string, schema: JsonObject): InputWord {
  const { title, description, type, enum: closed, examples, contentMediaType } = schema
  const about = [description, title].find((each) => typeof each === 'string' && each !== '')
  // Of a choice that is open the schema has examples; of anything else the one example is what its author had.
  const choices = closed ?? (Array.isArray(examples) && examples.length > 1 ? examples : [])
  return {
    text,
    ...(typeof about === 'string' && { about }),
    choices: Array.isArray(choices) ? choices.map((choice: JsonValue) => ({ text: String(choice) })) : [],
    isSwitch: type === 'boolean',
    isFile: contentMediaType !== undefined,
  }
}
