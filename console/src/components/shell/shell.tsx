/** What stands around every page: the places to go, the top line, and the way past them for those who use the keyboard. */
import type { ComponentChildren } from 'preact'
import { useKeys } from '../../keys/keys.ts'
import { isHelpOpen, isPaletteOpen } from '../../state/palette.ts'
import { ConfirmHost } from '../overlay/confirm.tsx'
import { SecretOnceHost } from '../overlay/secret-once.tsx'
import { ToastHost } from '../overlay/toast.tsx'
import { KeyHelp } from './key-help.tsx'
import { NavBar } from './nav-bar.tsx'
import { NoticeLine, Palette, TopLine } from './top-line.tsx'

export function Shell({ children }: { readonly children: ComponentChildren }) {
  useKeys({
    'mod+k': () => {
      isPaletteOpen.value = true
      return true
    },
    '?': () => {
      isHelpOpen.value = true
      return true
    },
  })
  return (
    <div class="shell">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault()
          document.getElementById('main')?.focus()
        }}
      >
        Skip to content
      </a>
      <NavBar />
      <div class="shell-body">
        <TopLine />
        <NoticeLine />
        <main id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      <ToastHost />
      <ConfirmHost />
      <SecretOnceHost />
      {isPaletteOpen.value && <Palette />}
      {isHelpOpen.value && <KeyHelp />}
    </div>
  )
}
