/** `atelier endpoints price`: what runs of an account's endpoint cost. For whoever runs the service, over the admin API. */
import type { Command } from 'commander'
import { pathOf } from '../admin/accounts.ts'
import { addAdminCommand, type CommandParts, type Options, textOf } from '../admin/admin-command.ts'
import { CommandError, EXIT } from '../terminal.ts'

interface PricedWire {
  readonly name: string
  readonly price: { readonly kind: string; readonly usd?: string; readonly max_seconds?: number }
}

export function addPrice(endpoints: Command, parts: CommandParts): void {
  addAdminCommand(
    endpoints
      .command('price')
      .description('set what runs of an account’s endpoint cost; for whoever runs the service')
      .argument('<name>', 'the endpoint')
      .requiredOption('--account <id>', 'whose it is')
      .option('--free', 'nothing')
      .option('--per-run <usd>', 'for each run that succeeds')
      .option('--per-second <usd>', 'for each second that a run takes, with --max-seconds')
      .option('--max-seconds <count>', 'more than these are not charged')
      .option('--as-pool', 'what the pool of its runs costs, as without a price of its own'),
    {
      ask: (client, options, [name = '']) =>
        client.call<PricedWire>(
          'PUT',
          `${pathOf(textOf(options, 'account') ?? '')}/endpoints/${encodeURIComponent(name)}/price`,
          toPrice(options),
        ),
      show: showPrice,
    },
    parts,
  )
}

function toPrice(options: Options): object {
  const [perRun, perSecond, maxSeconds] = ['perRun', 'perSecond', 'maxSeconds'].map((name) => textOf(options, name))
  const prices = [
    ...(options['free'] === true ? [{ kind: 'free' }] : []),
    ...(options['asPool'] === true ? [{ kind: 'pool' }] : []),
    ...(perRun === null ? [] : [{ kind: 'per_run', usd: perRun }]),
    ...(perSecond === null ? [] : [{ kind: 'per_second', usd: perSecond }]),
  ]
  if (prices.length !== 1)
    throw new CommandError('give one of --free, --per-run, --per-second and --as-pool', EXIT.usage)
  return { ...prices[0], ...(maxSeconds !== null && { max_seconds: Number(maxSeconds) }) }
}

function showPrice({ name, price: { kind, usd, max_seconds: most } }: PricedWire): string {
  if (kind === 'free') return `runs of ${name} are free`
  if (kind === 'pool') return `runs of ${name} cost what their pool costs`
  return kind === 'per_run' ? `runs of ${name} cost $${usd}` : `runs of ${name} cost $${usd} a second, at most ${most}`
}
