import { hrefOf } from '../../routes.ts'

const PLACES = {
  account: ['/account', 'Account'],
  usage: ['/account/usage', 'Usage'],
  keys: ['/account/keys', 'Keys'],
} as const

export function AccountTabs({ here }: { readonly here: keyof typeof PLACES }) {
  return (
    <nav class="segments page-tabs" aria-label="Account">
      {Object.entries(PLACES).map(([name, [to, label]]) => (
        <a key={name} href={hrefOf(to)} aria-current={name === here ? 'page' : undefined}>
          {label}
        </a>
      ))}
    </nav>
  )
}
