/**
 * `atelier work`: a process that runs jobs and serves no API, the same as `serve --role worker`. It offers the flags
 * that mean something for such a process; the environment and the config file may hold every setting, as for `serve`.
 */
import type { Command } from 'commander'
import { OTHER_ENV } from '../../config/env.ts'
import type { JoinFlags } from '../../config/join-config.ts'
import { isInGroup, SETTING_NAMES, type SettingGroup, type SettingName } from '../../config/settings/settings.ts'
import { addSettingFlags } from '../setting-flags.ts'
import type { Finish, Terminal } from '../terminal.ts'
import { serve } from './serve.ts'
import { workJoined } from './work-joined.ts'

const GROUPS: readonly SettingGroup[] = ['Storage', 'Jobs', 'Engine', 'Fleet', 'Router', 'Webhooks', 'Logs']
const OTHERS: readonly SettingName[] = ['kind', 'host', 'port', 'allowInsecureBind', 'tiers', 'publicUrl']
/** About answering clients, whatever their group. */
const NOT_HERE: readonly SettingName[] = ['maxQueue', 'drainDelay', 'content']

const EXAMPLES = `
A worker takes jobs from the database of a service and runs them on the engines beside it:

  ATELIER_DATABASE=postgres://… ATELIER_SECRET_KEY=… atelier work --comfyui http://127.0.0.1:8188

A machine that must reach neither the database nor the storage joins over HTTPS instead, with a key of its own (atelier workers
create), through outbound connections alone:

  ATELIER_WORKER_TOKEN=atl_… atelier work --join https://api.example.com --comfyui http://127.0.0.1:8188

A worker with the database listens for /healthz, /readyz and /metrics alone. SIGTERM lets runs finish within --drain-timeout; the rest goes back to the
queue. \`atelier nodes\` lists the workers of a service.`

export function addWork(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program.command('work').description('run jobs for a service that other processes serve')
  addSettingFlags(command, SETTING_NAMES.filter(isOffered))
    .option(
      '--join <url>',
      'join a service over HTTPS instead of its database; several addresses of it, comma separated',
    )
    .option('--token-file <file>', `a file with the worker key, for --join (or env ${OTHER_ENV.workerToken})`)
    .option('--token <key>', 'the worker key itself; every user of this machine can see it, so prefer the two above')
    .option(
      '--allow-plain-http',
      'join an address without TLS that is not of this machine, on a network that you trust',
    )
    .option(
      '--health <address>',
      'where a joined worker answers /healthz, /readyz and /metrics: a port, or host and port; default: nowhere',
    )
    .addHelpText('after', EXAMPLES)
    .action(async (options: Record<string, unknown>) => {
      const { join, token, tokenFile, allowPlainHttp, health, ...settings } = options
      if (typeof join !== 'string') return finish(await serve({ ...settings, role: 'worker' }, terminal))
      finish(await workJoined({ join, token, tokenFile, allowPlainHttp, health } as JoinFlags, settings, terminal))
    })
}

function isOffered(name: SettingName): boolean {
  if (NOT_HERE.includes(name)) return false
  return OTHERS.includes(name) || isInGroup(name, GROUPS)
}
