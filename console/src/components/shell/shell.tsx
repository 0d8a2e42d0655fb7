/** What stands around every page: the places to go, the top line, and the way past them for those who use the keyboard. */
import type { ComponentChildren } from 'preact'
import { isHelpOpen, isPaletteOpen, KEY_ROWS, useKeys } from '../../keys/keys.ts'
import { ConfirmHost, Dialog, SecretOnceHost } from '../overlay/dialog.tsx'
import { ToastHost } from '../text.tsx'
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

function KeyHelp() {
  return (
    <Dialog
      title="Keys"
      onClose={() => {
        isHelpOpen.value = false
      }}
    >
      <table class="key-table">
        <tbody>
          {KEY_ROWS.map(({ keys, deed }) => (
            <tr key={keys}>
              <th scope="row">
                <kbd>{keys}</kbd>
              </th>
              <td>{deed}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="dim">Keys of a single letter can be switched off under Settings. They never fire inside a field.</p>
    </Dialog>
  )
}
