/** `atelier jobs`: what an operator can do with a job of any account, on a running service. */
import type { Command } from 'commander'
import type { Finish, Terminal } from '../terminal.ts'
import { addAdminCommand } from './admin-command.ts'
import { toPairs } from './layout.ts'

interface JobStateWire {
  readonly id: string
  readonly account_id: string
  readonly status: string
}

export function addJobs(program: Command, terminal: Terminal, finish: Finish): void {
  const jobs = program.command('jobs').description('jobs of any account, on a running service')
  addAdminCommand<JobStateWire>(
    jobs.command('cancel').description('cancel a job, whoever owns it').argument('<id>', 'the job'),
    {
      ask: (client, _options, [id]) => client.call('POST', `/jobs/${encodeURIComponent(id ?? '')}/cancel`),
      show: ({ id, account_id, status }) =>
        toPairs([
          ['job', id],
          ['account', account_id],
          ['status', status],
        ]),
    },
    { terminal, finish },
  )
}
