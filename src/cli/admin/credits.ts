/** `atelier credits`: balances, grants, and a check of the ledger. */
import type { Command } from 'commander'
import { readUsdMicros } from '../../config/readers/read-quantity.ts'
import { CommandError, EXIT, type Finish, type Terminal } from '../terminal.ts'
import { pathOf, showEntries } from './accounts.ts'
import type { AccountWire, GrantWire, LedgerReportWire, StatementWire } from './admin-answers.ts'
import { type AdminClient, addAdminCommand, type Options, textOf, toPairs, toTable } from './admin-command.ts'
import { type EventsWire, exportEvents } from './export-events.ts'

export function addCredits(program: Command, terminal: Terminal, finish: Finish): void {
  const credits = program.command('credits').description('credits of accounts')
  const parts = { terminal, finish }

  addAdminCommand(
    withAmount(credits.command('grant')).description('give an account credit'),
    { ask: (client, options, args) => grant(client, options, args, 1), show: showGrant },
    parts,
  )

  addAdminCommand(
    withAmount(credits.command('take')).description('take granted credit back from an account'),
    {
      ask: (client, options, args) => grant(client, options, args, -1),
      show: (answer) => showGrant(answer, 'taken back'),
    },
    parts,
  )

  addAdminCommand(
    credits
      .command('show')
      .description('balance, holds and newest entries of an account')
      .argument('[account]', 'the account')
      .option('--account <id>', 'the account'),
    { ask: (client, options, [id]) => client.call('GET', pathOf(accountOf(options, id))), show: showAccount },
    parts,
  )

  addAdminCommand<StatementWire | CsvAnswer>(
    credits
      .command('statement')
      .description('what an account had, got and spent in a month of UTC, to the micro-dollar')
      .argument('[account]', 'the account')
      .option('--account <id>', 'the account')
      .option('--month <month>', 'such as 2026-01; left out: this one')
      .option('--csv', 'print it as a table in CSV'),
    { ask: askStatement, show: showStatement },
    parts,
  )

  addAdminCommand<EventsWire | { readonly added: number }>(
    credits
      .command('events')
      .description('charges and refunds of all accounts as events for a billing system (CloudEvents), oldest first')
      .option('--after <number>', 'those behind this one: what "next" of the answer before said')
      .option('--file <path>', 'add to this file what is not in it yet, one event a line'),
    { ask: askEvents, show: showEvents },
    parts,
  )

  addAdminCommand(
    credits.command('check').description('recompute balances and holds from the entries; exit 1 if they differ'),
    {
      ask: (client) => client.call<LedgerReportWire>('GET', '/ledger/check'),
      show: showReport,
      judge: ({ faults }) => (faults.length === 0 ? EXIT.ok : EXIT.failed),
    },
    parts,
  )
}

function accountOf(options: Options, given: string | undefined): string {
  const account = given ?? textOf(options, 'account')
  if (account !== null) return account
  throw new CommandError('which account? give --account <id>', EXIT.usage)
}

function withAmount(command: Command): Command {
  return command
    .argument('[account]', 'the account')
    .argument('[usd]', 'how much, in dollars, such as 25 or 0.50')
    .option('--account <id>', 'the account')
    .option('--usd <amount>', 'how much, in dollars')
    .option('--micros <amount>', 'how much, in millionths of a dollar')
    .option('--memo <text>', 'what it is for')
    .option('--id <text>', 'an id for this grant: repeating the command with it changes nothing')
}

/** In the admin API, taking credit back is a grant of a negative amount. */
function grant(
  client: AdminClient,
  options: Options,
  [account, amount]: readonly (string | undefined)[],
  sign: 1 | -1,
): Promise<GrantWire> {
  const given = [amount ?? null, textOf(options, 'usd'), textOf(options, 'micros')]
  const [memo, id] = [textOf(options, 'memo'), textOf(options, 'id')]
  if (given.every((text) => text === null)) throw new CommandError('how much? give --usd <amount>', EXIT.usage)
  if (given.filter((text) => text !== null).length > 1)
    throw new CommandError('how much? give one amount: --usd, or --micros, or the second argument', EXIT.usage)
  const micros = readAmount(given[0] ?? given[1], given[2])
  return client.call('POST', `${pathOf(accountOf(options, account))}/grants`, {
    micros: sign * micros,
    ...(memo !== null && { memo }),
    ...(id !== null && { id }),
  })
}

function readAmount(usd: string | null, micros: string | null): number {
  const [flag, text] = usd === null ? ['--micros', micros ?? ''] : ['--usd', usd]
  const isBelowZero = /^-[\d.]/.test(text)
  if (isBelowZero) throw notAbove(flag, text)
  const amount = usd === null ? readMicros(text) : readUsd(text)
  if (amount === 0) throw notAbove(flag, text)
  return amount
}

function notAbove(flag: string, text: string): CommandError {
  const hint = 'give an amount above zero; credit is taken back with: atelier credits take'
  return new CommandError(`${flag} ${JSON.stringify(text)} is not above zero; ${hint}`, EXIT.usage)
}

function readUsd(text: string): number {
  try {
    return readUsdMicros(text.replace(/^\$/, ''))
  } catch (error) {
    const bounds = 'at most nine digits before and six after the point'
    throw new CommandError(`--usd ${JSON.stringify(text)} ${(error as Error).message}, with ${bounds}`, EXIT.usage)
  }
}

function readMicros(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new CommandError(
    `--micros ${JSON.stringify(text)} is not a whole number of at most 15 digits; give for example 500000`,
    EXIT.usage,
  )
}

function showGrant({ outcome, balance }: GrantWire, done = 'granted'): string {
  const first = outcome === 'repeated' ? 'this was made before; nothing was changed' : done
  return `${first}: $${balance.available_usd} available, $${balance.held_usd} held`
}

function showAccount({ id, balance, usage, holds, entries }: AccountWire): string {
  const pairs = toPairs([
    ['account', id],
    ['available', balance === null ? 'not metered' : `$${balance.available_usd}`],
    ['held', balance === null ? null : `$${balance.held_usd}`],
    ['charged', `$${usage.charged_usd} since ${usage.from.slice(0, 10)}`],
  ])
  const open = toTable(
    ['hold', '$', 'since'],
    holds.map((hold) => [hold.id, hold.usd, hold.held_at]),
    { empty: 'no open holds' },
  )
  return `${pairs}\n\n${open}\n\n${showEntries(entries)}`
}

interface CsvAnswer {
  readonly csv: string
}

async function askStatement(client: AdminClient, options: Options, [id]: readonly (string | undefined)[]) {
  const month = textOf(options, 'month')
  const query = month === null ? '' : `?month=${encodeURIComponent(month)}`
  const path = `${pathOf(accountOf(options, id))}/statement${query}`
  if (options['csv'] !== true) return client.call<StatementWire>('GET', path)
  if (options['json'] === true) throw new CommandError('--csv and --json cannot be given together', EXIT.usage)
  return { csv: await client.table(path) }
}

function showStatement(answer: StatementWire | CsvAnswer): string {
  // Lines as this machine ends them: a terminal is sent no carriage return.
  if ('csv' in answer) return answer.csv.trimEnd().replaceAll('\r\n', '\n')
  const { rest } = answer
  const pairs = toPairs([
    ['account', answer.account_id],
    ['month', `${answer.month} (UTC)${answer.final ? '' : ', not over yet'}`],
    ['opening', `$${answer.opening_usd}`],
    ['added', `$${answer.added_usd}`],
    ['taken back', `$${answer.taken_back_usd}`],
    ['charged', `$${answer.charged_usd}`],
    ['refunded', `$${answer.refunded_usd}`],
    ['closing', `$${answer.closing_usd}, of which $${answer.held_usd} are held for ${answer.holds} jobs and calls`],
  ])
  const rows = [
    ...answer.lines,
    ...(rest === null ? [] : [{ kind: 'rest', model: null, pool: null, endpoint: null, ...rest }]),
  ]
  const lines = toTable(
    ['kind', 'model', 'pool', 'endpoint', 'count', 'charged', 'refunded'],
    rows.map(({ kind, model, pool, endpoint, count, charged_usd, refunded_usd }) => [
      ...[kind, model, pool, endpoint, count, `$${charged_usd}`, `$${refunded_usd}`],
    ]),
    { empty: 'nothing was charged' },
  )
  return `${pairs}\n\n${lines}`
}

async function askEvents(client: AdminClient, options: Options) {
  const [after, file] = [textOf(options, 'after'), textOf(options, 'file')]
  const page = (from: string | number) =>
    client.call<EventsWire>('GET', `/usage-events?after=${encodeURIComponent(from)}`)
  if (file === null) return page(after ?? 0)
  if (after !== null)
    throw new CommandError('--after cannot be given with --file, which knows where it ends', EXIT.usage)
  return { added: await exportEvents(file, page) }
}

function showEvents(answer: EventsWire | { readonly added: number }): string {
  if ('added' in answer) return `${answer.added} events added`
  return [...answer.events.map((event) => JSON.stringify(event)), `next: ${answer.next}`].join('\n')
}

function showReport({ accounts, entries, open_holds, faults }: LedgerReportWire): string {
  const counted = `${entries} entries and ${open_holds} open holds of ${accounts} accounts`
  if (faults.length === 0) return `everything adds up: ${counted}`
  const rows = faults.map((each) => [
    each.fault,
    each.account_id,
    each.reference,
    each.expected_micros,
    each.found_micros,
  ])
  return `${faults.length} faults in ${counted}\n\n${toTable(['fault', 'account', 'reference', 'expected', 'found'], rows, { empty: '' })}`
}
