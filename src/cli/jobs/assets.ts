/** `atelier assets`: the files of an account, which workflows use as inputs. */
import type { Command } from 'commander'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { toTable } from '../admin/admin-command.ts'
import { saveOutputs, upload } from '../run/run-remote.ts'
import type { RunClient } from '../server/client.ts'
import { readOutput, toFields } from '../server/job-answers.ts'
import { stoppable } from '../server/request.ts'
import { addServerCommands, type Options, type Said, type ServerCommand, textOf } from '../server/server-commands.ts'
import type { Finish, Terminal } from '../terminal.ts'

const COMMANDS: readonly ServerCommand[] = [
  {
    usage: 'list',
    description: 'list what was uploaded, the newest first',
    flags: [
      ['--limit <count>', 'how many, at most 500; default: 50'],
      ['--cursor <text>', 'go on where the list before ended'],
    ],
    ask: list,
  },
  {
    usage: 'upload <file...>',
    description: 'upload files and print their ids; a large one goes on where it was after a broken line',
    example: 'atelier assets upload cat.png',
    ask: uploadFiles,
  },
  {
    usage: 'download <id...>',
    description: 'fetch files: uploads, and outputs of jobs',
    flags: [['-o, --out <folder>', 'where to write them; default: the current folder']],
    ask: download,
  },
  { usage: 'remove <id...>', description: 'remove files; jobs that used them stay as they are', ask: remove },
]

export function addAssets(program: Command, terminal: Terminal, finish: Finish): void {
  const assets = program.command('assets').description('your files: upload, list, download, remove')
  addServerCommands(assets, COMMANDS, { terminal, finish })
}

const WITHIN_MS = 60_000
const within = () => AbortSignal.timeout(WITHIN_MS)
const pathOf = (id: string) => `/assets/${encodeURIComponent(id)}`

/** The Jobs API has no list of them; that of the console is open to the same credential. */
async function list(client: RunClient, _args: readonly string[], options: Options): Promise<Said> {
  const query = new URLSearchParams()
  for (const name of ['limit', 'cursor']) {
    const value = textOf(options, name)
    if (value !== null) query.set(name, value)
  }
  const answer = await client.read(`${client.baseUrl}/console/v1/assets?${query}`, within())
  const { assets, next_cursor: next } = toFields(answer)
  const rows = (Array.isArray(assets) ? assets : []).map((asset) => {
    const fields = toFields(asset)
    return [fields['asset_id'], fields['name'], fields['size_bytes'], fields['content_type'], fields['created_at']]
  })
  const table = toTable(['asset', 'name', 'bytes', 'type', 'uploaded'], rows, { empty: 'nothing was uploaded' })
  return { answer, lines: [table, ...(typeof next === 'string' ? [`more: --cursor ${next}`] : [])] }
}

async function uploadFiles(
  client: RunClient,
  files: readonly string[],
  _options: Options,
  terminal: Terminal,
): Promise<Said> {
  return stoppable(terminal, null, async (context) => {
    const made: JsonValue[] = []
    for (const file of files) {
      const { info } = toFields(await upload(client, file, context))
      made.push(await client.read(pathOf(String(toFields(info)['id'])), context.signal))
    }
    return { answer: made, lines: made.map((asset) => String(toFields(asset)['id'])) }
  })
}

async function download(
  client: RunClient,
  ids: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  return stoppable(terminal, null, async (context) => {
    const found: JsonValue[] = []
    for (const id of ids) found.push(await client.read(pathOf(id), context.signal))
    const outputs = found.map((asset) => {
      const { file_path: name, ...rest } = toFields(asset)
      return readOutput({ ...rest, name })
    })
    const files = await saveOutputs(client, outputs, textOf(options, 'out') ?? '.', context)
    return { answer: found.map((asset, index) => ({ ...toFields(asset), file: files[index] })), lines: files }
  })
}

async function remove(client: RunClient, ids: readonly string[]): Promise<Said> {
  for (const id of ids) await client.call(pathOf(id), { method: 'DELETE', signal: within() })
  return { answer: ids.map((id) => ({ deleted: id })), lines: ids.map((id) => `${id} is gone`) }
}
