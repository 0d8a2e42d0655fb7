/** `atelier provider-keys`: the keys that an account has at providers. A key comes through standard input, never as an argument. */
import type { Command } from 'commander'
import { toTable } from '../admin/admin-command.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { toFields } from './job-answers.ts'
import { addServerFlags, askServer } from './server-flags.ts'

type Options = Readonly<Record<string, unknown>>

const WITHIN_MS = 60_000
const MAX_KEY_BYTES = 16_384
const at = (provider: string) => `/provider-keys/${encodeURIComponent(provider)}`
const bounded = () => ({ signal: AbortSignal.timeout(WITHIN_MS) })

export function addProviderKeys(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program
    .command('provider-keys')
    .description("the account's own keys at the providers of models: calls with one cost no credits here")
  const listed = command.command('list').description('list them by their last letters').option('--json', 'print JSON')
  addServerFlags(listed).action(async (options: Options) => finish(await list(options, terminal)))
  const set = command
    .command('set')
    .description('save a key, which is read from standard input')
    .argument('<provider>', 'the first part of the ids of its models, such as openai')
    .addHelpText('after', '\nSuch as:  atelier provider-keys set openai < key.txt')
  addServerFlags(set).action(async (provider: string, options: Options) =>
    finish(await save(provider, options, terminal)),
  )
  const test = command
    .command('test')
    .description('ask the provider whether it takes the key, by a request that costs nothing')
    .argument('<provider>')
  addServerFlags(test).action(async (provider: string, options: Options) =>
    finish(await tryKey(provider, options, terminal)),
  )
  const remove = command
    .command('remove')
    .description('remove a key; calls then go with the key of the service, if it has one')
    .argument('<provider>')
  addServerFlags(remove).action(async (provider: string, options: Options) =>
    finish(
      await askServer(options, terminal, async (client) => {
        await client.call(at(provider), { method: 'DELETE', ...bounded() })
        return EXIT.ok
      }),
    ),
  )
}

function list(options: Options, terminal: Terminal): Promise<number> {
  return askServer(options, terminal, async (client) => {
    const answer = await client.read('/provider-keys', bounded().signal)
    const { provider_keys: keys } = toFields(answer)
    const rows = Array.isArray(keys) ? (keys as Readonly<Record<string, string>>[]) : []
    const cells = rows.map((row) => [row['provider'], `…${row['last_four']}`, row['status'], row['updated_at']])
    const table = toTable(['provider', 'key', 'status', 'saved'], cells, { empty: 'this account has no keys' })
    printLine(terminal.stdout, options['json'] === true ? JSON.stringify(answer, null, 2) : toPrintable(table))
    return EXIT.ok
  })
}

async function save(provider: string, options: Options, terminal: Terminal): Promise<number> {
  const key = await readKey(terminal)
  return askServer(options, terminal, async (client) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ key })
    await client.call(at(provider), { method: 'PUT', headers, body, ...bounded() })
    printLine(terminal.stdout, toPrintable(`the ${provider} key is saved; calls use it from now on`))
    return EXIT.ok
  })
}

function tryKey(provider: string, options: Options, terminal: Terminal): Promise<number> {
  return askServer(options, terminal, async (client) => {
    const answer = await client.call(`${at(provider)}/test`, { method: 'POST', ...bounded() })
    const { result, detail } = toFields(await answer.json())
    printLine(terminal.stdout, toPrintable(String(detail)))
    return result === 'works' || result === 'untestable' ? EXIT.ok : EXIT.failed
  })
}

async function readKey({ stdin }: Terminal): Promise<string> {
  let text = ''
  for await (const chunk of stdin) {
    text += String(chunk)
    if (text.length > MAX_KEY_BYTES) throw new CommandError('standard input is too long to be a key', EXIT.usage)
  }
  const key = text.trim()
  if (key !== '') return key
  throw new CommandError(
    'no key came through standard input; try: atelier provider-keys set <provider> < key.txt',
    EXIT.usage,
  )
}
