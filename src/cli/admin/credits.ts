/** `atelier credits`: what accounts have, and whether the books add up. */
import type { Command } from 'commander'
import { CommandError, EXIT, type Finish, type Terminal } from '../terminal.ts'
import { pathOf, showEntries } from './accounts.ts'
import { addAdminCommand, type Options } from './admin-command.ts'
import { type AdminClient, textOf } from './connect.ts'
import { toPairs, toTable } from './layout.ts'
import type { AccountWire, GrantWire, LedgerReportWire } from './wire.ts'

export function addCredits(program: Command, terminal: Terminal, finish: Finish): void {
  const credits = program.command('credits').description('credits of accounts')
  const parts = { terminal, finish }

  addAdminCommand(
    credits
      .command('grant')
      .description('give an account credit, or take some back with an amount below zero')
      .argument('[account]', 'the account')
      .argument('[usd]', 'how much, in dollars, such as 25 or 0.50')
      .option('--account <id>', 'the account')
      .option('--usd <amount>', 'how much, in dollars')
      .option('--micros <amount>', 'how much, in millionths of a dollar')
      .option('--memo <text>', 'what it is for')
      .option('--id <text>', 'a name of this grant that makes repeating the command harmless'),
    { ask: grant, show: showGrant },
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

function grant(
  client: AdminClient,
  options: Options,
  [account, amount]: readonly (string | undefined)[],
): Promise<GrantWire> {
  const [usd, micros] = [amount ?? textOf(options, 'usd'), textOf(options, 'micros')]
  const [memo, id] = [textOf(options, 'memo'), textOf(options, 'id')]
  if (usd === null && micros === null) throw new CommandError('how much? give --usd <amount>', EXIT.usage)
  if (micros !== null && !/^-?\d{1,15}$/.test(micros))
    throw new CommandError('--micros must be a whole number', EXIT.usage)
  return client.call('POST', `${pathOf(accountOf(options, account))}/grants`, {
    ...(usd !== null && { usd: usd.replace(/^\$/, '') }),
    ...(micros !== null && { micros: Number(micros) }),
    ...(memo !== null && { memo }),
    ...(id !== null && { id }),
  })
}

function showGrant({ outcome, balance }: GrantWire): string {
  const first = outcome === 'repeated' ? 'this grant was made before; nothing was added' : 'granted'
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
