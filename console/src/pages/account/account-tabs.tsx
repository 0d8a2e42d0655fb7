import { PageTabs } from '../../components/tabs/page-tabs.tsx'

const PLACES = {
  account: ['/account', 'Account'],
  usage: ['/account/usage', 'Usage'],
  keys: ['/account/keys', 'Keys'],
} as const

export function AccountTabs({ here }: { readonly here: keyof typeof PLACES }) {
  return <PageTabs label="Account" places={Object.values(PLACES)} here={PLACES[here][0]} />
}
