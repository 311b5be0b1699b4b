/** What a session wants its credentials for; all of it with placeholders only. */
export const USEFUL: readonly { name: string; script: string; expect: RegExp }[] = [
  {
    name: 'a request with a bearer token',
    script: 'curl -sS --max-time 6 -i -H "Authorization: Bearer $API_TOKEN" https://api.test:$TLS/ok',
    expect: /HTTP\/\S+ 200[\s\S]*hello from api\.test:\d+: Bearer drover_ph_/,
  },
  {
    name: 'git clone, commit and push over https',
    script:
      'rm -rf work && git clone -q https://git.test:$TLS/project.git work && cd work && git -c user.name=a -c user.email=a@a commit -q --allow-empty -m agent && git push -q origin HEAD:main && git fetch -q && git log --oneline origin/main | wc -l',
    expect: /^2\s/m,
  },
  {
    name: 'npm install from a registry that wants a token',
    script: `rm -rf npm && mkdir npm && cd npm && echo "{}" > package.json && printf 'registry=https://registry.test:%s/\\n//registry.test:%s/:_authToken=\${NPM_TOKEN}\\n' $TLS $TLS > .npmrc && npm install --no-audit --no-fund --cache ./cache left-hand 2>&1 && node -p "require('left-hand')"`,
    expect: /from the registry/,
  },
  {
    name: 'a credential in a body, where it may be',
    script:
      'curl -sS --max-time 6 -i -H "content-type: application/json" -d "{\\"token\\":\\"$BODY_TOKEN\\"}" https://body.test:$TLS/',
    expect: /"token":"drover_ph_/,
  },
];
