/** Reads the file with keys and settings of providers, again with every reload. Error messages never quote its content. */
import { readFile } from 'node:fs/promises'
import { ProviderSettingsError } from '../../adapters/providers/provider-settings.ts'
import type { OperatorFile } from './open-models.ts'
import type { OpenedProviders } from './open-providers.ts'

const UNCHANGED = { use() {} }

export function openOperatorFile(
  file: string | null,
  providers: Pick<OpenedProviders, 'readSettings' | 'settingsOf'>,
): OperatorFile {
  return {
    file,
    of: providers.settingsOf,
    async read() {
      if (file === null) return UNCHANGED
      try {
        return providers.readSettings(await readFile(file, 'utf8'))
      } catch (error) {
        if (error instanceof ProviderSettingsError) return { file, problem: error.message }
        const { code } = error as NodeJS.ErrnoException
        if (code !== undefined) return { file, problem: `the settings of providers cannot be read (${code})` }
        throw error
      }
    },
  }
}
