/** Environments: who may have them built. */
import { readList, readWordOr } from '../readers/read-choice.ts'
import type { SettingTable } from './setting.ts'

function readAccount(text: string): string {
  if (/^[\x21-\x2b\x2d-\x7e]{1,200}$/.test(text)) return text
  throw new Error('has an item that is no id of an account; give for example acme,studio')
}

const NOBODY: readonly string[] = []

export const BUILD_SETTINGS = {
  builds: {
    argument: '<accounts>',
    fallback: 'none',
    read: readWordOr('none', NOBODY, readWordOr('all', 'all', readList(readAccount))),
    help: 'The accounts that may define environments and have them built, comma separated (docs/environments.md); `local` is the one account of the local kind. Whoever may runs code of their own on the machines that build and run them. `all`: every account. `none`: nobody.',
    who: 'Operators who let accounts bring their own node packs and models.',
  },
} as const satisfies SettingTable
