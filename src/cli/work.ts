/**
 * `atelier work`: a process that runs jobs and answers nobody, `serve --role worker` under a name of its own. It offers the flags
 * that mean something for such a process; the environment and the config file may hold every setting, as for `serve`.
 */
import type { Command } from 'commander'
import type { SettingName } from '../config/env.ts'
import type { SettingGroup } from '../config/settings/setting.ts'
import { SETTING_NAMES, SETTINGS } from '../config/settings/settings.ts'
import { serve } from './serve.ts'
import { addSettingFlags } from './setting-flags.ts'
import type { Finish, Terminal } from './terminal.ts'

const GROUPS: readonly SettingGroup[] = ['Storage', 'Jobs', 'Engine', 'Fleet', 'Router', 'Logs']
const OTHERS: readonly SettingName[] = ['kind', 'host', 'port', 'allowInsecureBind', 'tiers', 'publicUrl']
/** About answering clients, whatever their group. */
const NOT_HERE: readonly SettingName[] = ['synchronous', 'maxQueue', 'drainDelay']

const EXAMPLES = `
A worker takes jobs from the database of a service and runs them on the engines beside it:

  ATELIER_DATABASE=postgres://… ATELIER_SECRET_KEY=… atelier work --comfyui http://127.0.0.1:8188

It listens for /healthz, /readyz and /metrics alone. SIGTERM lets runs finish within --drain-timeout; the rest goes back to the
queue. \`atelier nodes\` lists the workers of a service.`

export function addWork(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program.command('work').description('run jobs for a service that other processes serve')
  addSettingFlags(command, SETTING_NAMES.filter(isOffered))
    .addHelpText('after', EXAMPLES)
    .action(async (options: Record<string, unknown>) => {
      finish(await serve({ ...options, role: 'worker' }, terminal))
    })
}

function isOffered(name: SettingName): boolean {
  if (NOT_HERE.includes(name)) return false
  return OTHERS.includes(name) || GROUPS.includes(SETTINGS[name].group)
}
