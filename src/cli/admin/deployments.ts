/** `atelier deployments`: named addresses with workers of their own. */
import type { Command } from 'commander'
import { readDurationMs } from '../../config/readers/read-quantity.ts'
import { CommandError, EXIT, type Finish, type Terminal } from '../terminal.ts'
import type { DeploymentWire } from './admin-answers.ts'
import { type AdminClient, addAdminCommand, type Options, textOf, toPairs, toTable } from './admin-command.ts'

const YEAR_MS = 365 * 86_400_000

export function addDeployments(program: Command, terminal: Terminal, finish: Finish): void {
  const deployments = program.command('deployments').description('named deployments with workers of their own')
  const parts = { terminal, finish }
  const one = { show: showDeployment }

  addAdminCommand(
    withSettings(deployments.command('create'))
      .description('create a deployment and start it')
      .argument('<id>', 'its id, one DNS label')
      .option('--account <id>', 'whose it is; default: every account may use it'),
    { ask: create, ...one },
    parts,
  )

  addAdminCommand(
    withSettings(deployments.command('update')).description('change a deployment').argument('<id>', 'the deployment'),
    { ask: (client, options, [id]) => client.call('PATCH', pathOf(id), settingsOf(options)), ...one },
    parts,
  )

  addAdminCommand(
    deployments.command('start').description('start a deployment').argument('<id>', 'the deployment'),
    { ask: (client, _options, [id]) => client.call('POST', `${pathOf(id)}/start`), ...one },
    parts,
  )

  addAdminCommand(
    deployments
      .command('stop')
      .description('stop a deployment once its jobs are done')
      .argument('<id>', 'the deployment')
      .option('--now', 'do not wait: jobs that wait stay until it is started again'),
    {
      ask: (client, options, [id]) => client.call('POST', `${pathOf(id)}/stop`, { now: options['now'] === true }),
      ...one,
    },
    parts,
  )

  addAdminCommand(
    deployments.command('show').description('one deployment').argument('<id>', 'the deployment'),
    { ask: (client, _options, [id]) => client.call('GET', pathOf(id)), ...one },
    parts,
  )

  addAdminCommand(
    deployments.command('list').description('list deployments'),
    { ask: (client) => client.call('GET', '/deployments'), show: showList },
    parts,
  )
}

function withSettings(command: Command): Command {
  return command
    .option('--workers <count>', 'jobs that run at once; 0: workers come through the pool hook')
    .option('--idle <duration>', 'after how long without a job its workers go, such as 5m')
}

function pathOf(id = ''): string {
  return `/deployments/${encodeURIComponent(id)}`
}

function create(client: AdminClient, options: Options, [id]: readonly (string | undefined)[]): Promise<DeploymentWire> {
  const account = textOf(options, 'account')
  return client.call('POST', '/deployments', {
    id,
    ...(account !== null && { account_id: account }),
    ...settingsOf(options),
  })
}

function settingsOf(options: Options): object {
  const [workers, idle] = [textOf(options, 'workers'), textOf(options, 'idle')]
  if (workers !== null && !/^\d{1,4}$/.test(workers))
    throw new CommandError('--workers must be a whole number', EXIT.usage)
  return {
    ...(workers !== null && { workers: Number(workers) }),
    ...(idle !== null && { idle_after_ms: readIdle(idle) }),
  }
}

function readIdle(text: string): number {
  try {
    return readDurationMs({ min: 1000, max: YEAR_MS })(text)
  } catch (error) {
    throw new CommandError(`--idle ${JSON.stringify(text)} ${(error as Error).message}`, EXIT.usage)
  }
}

function showDeployment({ id, state, account_id, workers, use, path, host }: DeploymentWire): string {
  return toPairs([
    ['deployment', id],
    ['state', state],
    ['account', account_id ?? 'every account'],
    ['workers', `${use.workers} of ${workers} there`],
    ['jobs', `${use.running} running, ${use.queued} waiting`],
    ['path', path],
    ['host', host],
  ])
}

function showList({ deployments }: { readonly deployments: readonly DeploymentWire[] }): string {
  const rows = deployments.map(({ id, state, account_id, workers, use, host, path }) => [
    id,
    state,
    account_id ?? 'every account',
    `${use.workers}/${workers}`,
    `${use.running}/${use.queued}`,
    host ?? path,
  ])
  return toTable(['id', 'state', 'account', 'workers', 'running/waiting', 'address'], rows, {
    empty: 'no deployments; make one with: atelier deployments create <id>',
  })
}
