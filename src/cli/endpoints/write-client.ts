/** `atelier endpoints client`: a typed client of one endpoint, as one file of source text. */
import type { RunClient } from '../server/client.ts'
import { type Options, type Said, textOf, toFile } from '../server/server-commands.ts'
import { CommandError, EXIT, type Terminal } from '../terminal.ts'
import type { ClientFacts } from './client-facts.ts'
import { toPythonClient } from './client-python.ts'
import { toTypescriptClient } from './client-typescript.ts'
import { readEndpoint, readVersion } from './endpoint-api.ts'

const LANGUAGES: Readonly<Record<string, (facts: ClientFacts) => string>> = {
  ts: toTypescriptClient,
  typescript: toTypescriptClient,
  python: toPythonClient,
  py: toPythonClient,
}

export async function writeClient(
  client: RunClient,
  [name]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const language = textOf(options, 'lang') ?? (textOf(options, 'out')?.endsWith('.py') ? 'python' : 'ts')
  if (!Object.hasOwn(LANGUAGES, language))
    throw new CommandError(
      `--lang ${JSON.stringify(language)} is not a language that clients are written in: ts, python`,
      EXIT.usage,
    )
  const endpoint = await readEndpoint(client, name)
  const selector = textOf(options, 'version')
  const version = await readVersion(client, name, selector ?? String(endpoint.current_version))
  const reference = selector === null ? name : `${name}@${selector}`
  const baseUrl = endpoint.urls.self.slice(0, -`/api/v2/endpoints/${encodeURIComponent(name)}`.length)
  const text = LANGUAGES[language]({ reference, baseUrl, endpoint, version })
  return { answer: { client: text }, lines: toFile(text, options, terminal) }
}
