/** `atelier verify`: reads everything in a data folder and reports what is damaged or missing. */
import type { Command } from 'commander'
import { type DataFault, hasData, verifyData } from '../compose/storage/verify-data.ts'
import { addSettingFlags, loadFromCommandLine } from './setting-flags.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal } from './terminal.ts'

const WORDS: Readonly<Record<DataFault['kind'], string>> = {
  database: 'database  ',
  damaged: 'damaged   ',
  missing: 'missing   ',
}

export function addVerify(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program
    .command('verify')
    .description('read the whole data folder, also beside a running service, and say what is damaged or missing')
    .option(
      '--set-aside',
      'move damaged files to blobs/damaged and remove damaged small outputs: the same bytes, sent again, then mend them',
    )
  addSettingFlags(command, ['dataDir', 'database', 'databasePasswordFile', 'blobs', 'blobsKeysFile']).action(
    async (options: Record<string, unknown>) => {
      const { config, secrets } = loadFromCommandLine(options, terminal, { isForUpkeep: true })
      if (!hasData(config)) throw new CommandError(`there is no database in ${config.dataDirectory}`, EXIT.usage)
      const { files, bytes, faults } = await verifyData(config, { secrets, setAside: options['setAside'] === true })
      for (const { kind, what } of faults) printLine(terminal.stdout, `${WORDS[kind]}${what}`)
      const read = `${files} files, ${(bytes / 2 ** 20).toFixed(1)} MiB read`
      printLine(terminal.stdout, `${read}: ${toVerdict(faults.length)}`)
      finish(faults.length === 0 ? EXIT.ok : EXIT.failed)
    },
  )
}

function toVerdict(count: number): string {
  if (count === 0) return 'all is well'
  return count === 1 ? 'one fault' : `${count} faults`
}
