/** What stands around every page: the places to go, the top line, and the way past them for those who use the keyboard. */
import type { ComponentChildren } from 'preact'
import { session } from '../../state/session.ts'
import { NavBar } from './nav-bar.tsx'
import { TopLine } from './top-line.tsx'

export function Shell({ children }: { readonly children: ComponentChildren }) {
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <NavBar />
      <div class="shell-body">
        <TopLine />
        <main id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      {session.value?.kind === 'local' && !session.value.needs_credential && (
        <p class="local-note dim">local, no token</p>
      )}
    </div>
  )
}
