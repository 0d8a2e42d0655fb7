/** Headers that bear the service's name go out once per brand: official clients read only their own. */
export type BrandHeaders = Readonly<
  Record<'errorType' | 'upstreamStatus' | 'upstreamDetail' | 'creditsUsed', readonly string[]>
>

export function createBrandHeaders(brands: readonly string[]): BrandHeaders {
  const named = (name: string) => brands.map((brand) => `X-${brand}-${name}`)
  return {
    errorType: named('Error-Type'),
    upstreamStatus: named('Upstream-Status'),
    upstreamDetail: named('Upstream-Detail'),
    creditsUsed: named('Credits-Used'),
  }
}
